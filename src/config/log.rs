//! `log_format`: how the lines of the log are written.

use figment::Figment;
use serde::Deserialize;

/// A way to write a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// An object a line, for machines.
    Json,
    /// For people.
    Text,
}

impl LogFormat {
    /// What is set; JSON in the profile `release` and text in any other where nothing is. Needed before the
    /// settings are read as a whole, which find out what is neither.
    #[must_use]
    pub fn of(figment: &Figment) -> Self {
        let usual = if figment.profile() == "release" { Self::Json } else { Self::Text };
        figment.extract_inner("log_format").unwrap_or(usual)
    }
}
