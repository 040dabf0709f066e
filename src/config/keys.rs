//! `[default.keys]`: rotation of the keys that sign access tokens.

use serde::{Deserialize, Deserializer};

use super::text::{self, DAY};

/// The shortest `announce`. With less, a key would sign before every verifier has loaded it.
const SHORTEST: u32 = Keys::RELOAD_EVERY + Keys::MAX_AGE;
const HALF_A_DAY: u32 = DAY / 2;

/// Periods of key rotation, in seconds.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// The time for which a key is published before it signs; 10 minutes by default.
    #[serde(deserialize_with = "text::seconds::<SHORTEST, HALF_A_DAY, _>")]
    pub announce: u32,
    /// The time for which a key signs; 30 days by default.
    #[serde(deserialize_with = "rotation")]
    pub rotate_every: u32,
}

impl Keys {
    /// The interval at which an instance loads keys that other instances made.
    pub const RELOAD_EVERY: u32 = 30;
    /// The time for which a verifier of tokens may cache the published keys.
    pub const MAX_AGE: u32 = 300;
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            announce: 600,
            rotate_every: 30 * DAY,
        }
    }
}

fn rotation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let remedy = "set it to one day to 400 days, 86400 to 34560000 seconds";
    text::number(deserializer, DAY..=400 * DAY, remedy)
}
