//! `[default.rate_limit]`: how often one caller may ask.

use std::num::NonZeroU32;

use figment::Figment;
use serde::Deserialize;

use super::{Error, text};

/// More than this is no limit.
const MAX: u32 = 1_000_000;

/// Requests a minute. A minute's worth may come at once, and each one used comes back in turn.
#[derive(Debug, Clone, Copy)]
pub struct RateLimit {
    /// On by default.
    pub enabled: bool,
    /// From one address (IPv6: one /64, and sixteen times as many from one /48); 60 by default. Staff sign in under a
    /// counter of their own.
    ///
    /// A mobile carrier puts some thousand phones behind one IPv4 address. A phone signs in about
    /// once in the life of a refresh token; even when a release of the app signs a thousand of them
    /// out, they come back within a quarter of an hour. Each attempt may cost a call to a provider.
    pub sign_in_per_minute: NonZeroU32,
    /// From one address (IPv6: one /64, and sixteen times as many from one /48); 600 by default.
    ///
    /// A phone in use comes once in the life of an access token: at 15 minutes that is nine thousand
    /// phones in use behind one address. There are 2²⁵⁶ refresh tokens, so the limit protects the
    /// database; guessing is hopeless without it.
    pub refresh_per_minute: NonZeroU32,
    /// Of one session, which is one phone; 120 by default.
    pub session_per_minute: NonZeroU32,
    /// For admin pages, from one address (IPv6: one /64); 600 by default: a hundred members of staff in one
    /// office, who open a page every ten seconds.
    pub staff_pages_per_minute: NonZeroU32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "text::parsed")]
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "text::parsed")]
    sign_in_per_minute: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    refresh_per_minute: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    session_per_minute: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    staff_pages_per_minute: Option<u32>,
}

pub(super) fn read(figment: &Figment, raw: &Raw) -> Result<RateLimit, Error> {
    let number = |name: &str, set: Option<u32>, default: u32| {
        let number = NonZeroU32::new(set.unwrap_or(default)).filter(|number| number.get() <= MAX);
        number.ok_or_else(|| {
            let remedy = "set it to 1 to 1000000 requests a minute, or `rate_limit.enabled` to false";
            Error::at(figment, &format!("rate_limit.{name}"), "is out of range", remedy)
        })
    };
    Ok(RateLimit {
        enabled: raw.enabled.unwrap_or(true),
        sign_in_per_minute: number("sign_in_per_minute", raw.sign_in_per_minute, 60)?,
        refresh_per_minute: number("refresh_per_minute", raw.refresh_per_minute, 600)?,
        session_per_minute: number("session_per_minute", raw.session_per_minute, 120)?,
        staff_pages_per_minute: number("staff_pages_per_minute", raw.staff_pages_per_minute, 600)?,
    })
}
