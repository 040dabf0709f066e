//! `[default.keys]`: rotation of the keys that sign access tokens.

use figment::Figment;
use serde::Deserialize;

use super::{Error, text};

/// Periods of key rotation, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    /// The time for which a key is published before it signs; 10 minutes by default.
    pub announce: u32,
    /// The time for which a key signs; 30 days by default.
    pub rotate_every: u32,
}

impl Keys {
    /// The interval at which an instance loads keys that other instances made.
    pub const RELOAD_EVERY: u32 = 30;
    /// The time for which a verifier of tokens may cache the published keys.
    pub const MAX_AGE: u32 = 300;
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "text::parsed")]
    announce: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    rotate_every: Option<u32>,
}

pub(super) fn read(figment: &Figment, raw: &Raw) -> Result<Keys, Error> {
    const DAY: u32 = 24 * 60 * 60;
    // With a shorter time, a key would sign before every verifier has loaded it.
    const SHORTEST: u32 = Keys::RELOAD_EVERY + Keys::MAX_AGE;
    let keys =
        Keys { announce: raw.announce.unwrap_or(600), rotate_every: raw.rotate_every.unwrap_or(30 * DAY) };
    let out_of_range = |key: &str, remedy: String| Err(Error::at(figment, key, "is out of range", remedy));
    if !(SHORTEST..=DAY / 2).contains(&keys.announce) {
        return out_of_range("keys.announce", format!("set it to {SHORTEST} to {} seconds", DAY / 2));
    }
    if !(DAY..=400 * DAY).contains(&keys.rotate_every) {
        return out_of_range(
            "keys.rotate_every",
            format!("set it to one day to 400 days, {DAY} to {} seconds", 400 * DAY),
        );
    }
    Ok(keys)
}
