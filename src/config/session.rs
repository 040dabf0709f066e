//! `[default.session]`: how long what the service hands out stays valid.

use figment::Figment;
use serde::Deserialize;

use super::{Error, text};

/// Lifetimes, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// Of an access token; 15 minutes by default.
    pub access_token_ttl: u32,
    /// Of a refresh token that is not used; 30 days by default.
    pub refresh_token_ttl: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "text::parsed")]
    access_token_ttl: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    refresh_token_ttl: Option<u32>,
}

pub(super) fn read(figment: &Figment, raw: &Raw) -> Result<Session, Error> {
    const MINUTE: u32 = 60;
    const DAY: u32 = 24 * 60 * MINUTE;
    let session = Session {
        access_token_ttl: raw.access_token_ttl.unwrap_or(15 * MINUTE),
        refresh_token_ttl: raw.refresh_token_ttl.unwrap_or(30 * DAY),
    };
    if !(MINUTE..=DAY).contains(&session.access_token_ttl) {
        let problem = "is out of range";
        return Err(Error::at(figment, "session.access_token_ttl", problem, "set it to 60 to 86400 seconds"));
    }
    if session.refresh_token_ttl < session.access_token_ttl || session.refresh_token_ttl > 400 * DAY {
        let remedy = "set it to no less than access_token_ttl and no more than 400 days, in seconds";
        return Err(Error::at(figment, "session.refresh_token_ttl", "is out of range", remedy));
    }
    Ok(session)
}
