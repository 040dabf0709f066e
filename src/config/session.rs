//! `[default.session]`: lifetimes of sessions and tokens.

use figment::Figment;
use serde::Deserialize;

use super::{Error, text};

const MINUTE: u32 = 60;
const DAY: u32 = 24 * 60 * MINUTE;

/// Lifetimes in seconds, and the limit of sessions.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// The lifetime of an access token; 15 minutes by default.
    pub access_token_ttl: u32,
    /// The lifetime of an unused refresh token; 30 days by default.
    pub refresh_token_ttl: u32,
    /// The longest lifetime of a session, however much it is used; a year by default.
    pub absolute_ttl: u32,
    /// Seconds for which a refresh can be repeated if its response was lost; a day by default.
    pub refresh_grace: u32,
    /// The sessions that one identity may have; 100 by default. Pruning ends those beyond that, the least recently
    /// used first.
    pub max_per_identity: u32,
    /// Seconds after its start in which a session may link and unlink identities and delete its user without another
    /// `id_token`; ten minutes by default.
    pub reauthentication_window: u32,
}

impl Session {
    /// The longest lifetime of an access token that can be set.
    pub const LONGEST_ACCESS_TOKEN_TTL: u32 = DAY;
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "text::parsed")]
    access_token_ttl: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    refresh_token_ttl: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    absolute_ttl: Option<u32>,
    #[serde(default, deserialize_with = "text::seconds")]
    refresh_grace: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    max_per_identity: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    reauthentication_window: Option<u32>,
}

pub(super) fn read(figment: &Figment, raw: &Raw) -> Result<Session, Error> {
    let session = Session {
        access_token_ttl: raw.access_token_ttl.unwrap_or(15 * MINUTE),
        refresh_token_ttl: raw.refresh_token_ttl.unwrap_or(30 * DAY),
        absolute_ttl: raw.absolute_ttl.unwrap_or(365 * DAY),
        refresh_grace: raw.refresh_grace.unwrap_or(DAY),
        max_per_identity: raw.max_per_identity.unwrap_or(100),
        reauthentication_window: raw.reauthentication_window.unwrap_or(10 * MINUTE),
    };
    let check = |sound: bool, key: &str, remedy: &str| {
        sound
            .then_some(())
            .ok_or_else(|| Error::at(figment, &format!("session.{key}"), "is out of range", remedy))
    };
    let Session {
        access_token_ttl, refresh_token_ttl, absolute_ttl, refresh_grace, max_per_identity, ..
    } = session;
    let permitted = MINUTE..=Session::LONGEST_ACCESS_TOKEN_TTL;
    check(permitted.contains(&access_token_ttl), "access_token_ttl", "set it to 60 to 86400 seconds")?;
    check(
        (access_token_ttl..=400 * DAY).contains(&refresh_token_ttl),
        "refresh_token_ttl",
        "set it to no less than access_token_ttl and no more than 400 days, in seconds",
    )?;
    check(
        (refresh_token_ttl..=4000 * DAY).contains(&absolute_ttl),
        "absolute_ttl",
        "set it to no less than refresh_token_ttl and no more than 4000 days, in seconds",
    )?;
    check(refresh_grace <= 30 * DAY, "refresh_grace", "set it to 0s to 2592000s (30 days)")?;
    check((1..=10_000).contains(&max_per_identity), "max_per_identity", "set it to 1 to 10000")?;
    check(
        (MINUTE..=DAY).contains(&session.reauthentication_window),
        "reauthentication_window",
        "set it to 60 to 86400 seconds",
    )?;
    Ok(session)
}
