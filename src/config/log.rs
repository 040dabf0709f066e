//! `log_format`: the format of the log.

use figment::Figment;
use serde::Deserialize;

/// A format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per line, for machines.
    Json,
    /// Text, for people.
    Text,
}

impl LogFormat {
    /// Returns the format that is set. The default is JSON in the profile `release` and text in any other. It
    /// is needed before the settings are read as a whole; an invalid value falls back to the default here and
    /// is reported then.
    #[must_use]
    pub fn of(figment: &Figment) -> Self {
        let usual = if figment.profile() == "release" { Self::Json } else { Self::Text };
        figment.extract_inner("log_format").unwrap_or(usual)
    }
}
