//! `[default.events]`: the events that are stored.

use serde::{Deserialize, Deserializer};

use super::text;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// Days after which an event is deleted; 400 by default.
    #[serde(deserialize_with = "days")]
    pub retention_days: u32,
    /// True if each event is also a line of the log.
    pub log: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            retention_days: 400,
            log: false,
        }
    }
}

fn days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    text::number(deserializer, 1..=4000, "set it to 1 to 4000 days")
}
