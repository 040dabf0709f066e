//! `log_format` and `log_level`: the format of the log, and its lines.

use figment::Figment;
use serde::Deserialize;

/// The least important lines that are logged. The name is also a key of Rocket, whose own lines are
/// never logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Off,
    /// Failures of the service.
    Error,
    /// Also anything that an operator should look at.
    Warn,
    /// Also a line for each request.
    Info,
    /// Also a line for each probe of monitoring.
    Debug,
}

impl LogLevel {
    /// Returns the level that is set. Like the format, it is needed before the settings are read as
    /// a whole.
    pub fn of(figment: &Figment) -> Self {
        figment.extract_inner("log_level").unwrap_or(Self::Info)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per line, for machines.
    Json,
    Text,
}

impl LogFormat {
    /// Returns the format that is set. The default is JSON in the profile `release` and text in any
    /// other. It is needed before the settings are read as a whole; an invalid value falls back to
    /// the default here and is reported then.
    pub fn of(figment: &Figment) -> Self {
        let usual = if figment.profile() == "release" {
            Self::Json
        } else {
            Self::Text
        };
        figment.extract_inner("log_format").unwrap_or(usual)
    }
}
