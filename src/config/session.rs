//! `[default.session]`: lifetimes of sessions and tokens.

use figment::Figment;
use serde::{Deserialize, Deserializer};

use super::error::Error;
use super::text::{self, DAY};
use crate::domain::Binding;

const MINUTE: u32 = 60;

/// Lifetimes in seconds, and the limit of sessions.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Session {
    /// The lifetime of an access token; 15 minutes by default.
    #[serde(deserialize_with = "text::seconds::<MINUTE, DAY, _>")]
    pub access_token_ttl: u32,
    /// The lifetime of an unused refresh token; 30 days by default.
    #[serde(deserialize_with = "text::whole")]
    pub refresh_token_ttl: u32,
    /// The longest lifetime of a session, however much it is used; a year by default.
    #[serde(deserialize_with = "text::whole")]
    pub absolute_ttl: u32,
    /// Seconds for which a refresh can be repeated if its response was lost; a day by default.
    #[serde(deserialize_with = "grace")]
    pub refresh_grace: u32,
    /// The most sessions of one identity; 100 by default. Pruning ends the others, the least
    /// recently used first.
    #[serde(deserialize_with = "text::count")]
    pub max_per_identity: u32,
    /// Seconds after its start in which a session may link and unlink identities and delete its
    /// user without another `id_token`; ten minutes by default.
    #[serde(deserialize_with = "text::seconds::<MINUTE, DAY, _>")]
    pub reauthentication_window: u32,
    /// The binding of new sessions to a key of the device (RFC 9449); `optional` by default.
    pub binding: Binding,
}

impl Session {
    /// The longest lifetime of an access token that can be set.
    pub const LONGEST_ACCESS_TOKEN_TTL: u32 = DAY;
}

impl Default for Session {
    fn default() -> Self {
        Self {
            access_token_ttl: 15 * MINUTE,
            refresh_token_ttl: 30 * DAY,
            absolute_ttl: 365 * DAY,
            refresh_grace: DAY,
            max_per_identity: 100,
            reauthentication_window: 10 * MINUTE,
            binding: Binding::Optional,
        }
    }
}

fn grace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    text::time(
        deserializer,
        0..=30 * DAY,
        "set it to 0s to 2592000s (30 days)",
    )
}

/// Checks the lifetimes against each other.
pub(super) fn check(figment: &Figment, session: Session) -> Result<Session, Error> {
    let Session {
        access_token_ttl,
        refresh_token_ttl,
        absolute_ttl,
        ..
    } = session;
    let error = |key, remedy| Err(Error::at(figment, key, "is out of range", remedy));
    if !(access_token_ttl..=400 * DAY).contains(&refresh_token_ttl) {
        let remedy =
            "set it to no less than access_token_ttl and no more than 400 days, in seconds";
        return error("session.refresh_token_ttl", remedy);
    }
    if !(refresh_token_ttl..=4000 * DAY).contains(&absolute_ttl) {
        let remedy =
            "set it to no less than refresh_token_ttl and no more than 4000 days, in seconds";
        return error("session.absolute_ttl", remedy);
    }
    Ok(session)
}
