//! `[default.rate_limit]`: rate limits for one caller.

use std::num::NonZeroU32;

use figment::Figment;
use serde::Deserialize;

use super::{Error, text};

/// The highest accepted rate. A higher one would not limit anything.
const MAX: u32 = 1_000_000;

/// Rates in requests per minute. One minute's worth may come at once; the allowance refills evenly.
#[derive(Debug, Clone, Copy)]
pub struct RateLimit {
    /// Turns all limits on or off; on by default.
    pub enabled: bool,
    /// Sign-ins from one IP address (IPv6: one /64, and sixteen times as many from one /48); 60 by default.
    /// Staff sign-ins have a counter of their own.
    ///
    /// A mobile carrier has some thousand phones behind one IPv4 address. A phone signs in about once in the
    /// life of a refresh token. If a release of the app signs a thousand phones out, they are back within a
    /// quarter of an hour. Each attempt may cost a call to a provider.
    pub sign_in_per_minute: NonZeroU32,
    /// Refreshes from one IP address (IPv6: one /64, and sixteen times as many from one /48); 600 by default.
    ///
    /// A phone in use refreshes once in the life of an access token: at 15 minutes that is nine thousand
    /// phones in use behind one IP address. The limit protects the database. Guessing needs no limit: there
    /// are 2²⁵⁶ refresh tokens.
    pub refresh_per_minute: NonZeroU32,
    /// Requests of one session, which is one phone, from one IP address (IPv6: one /64, and sixteen times as many from
    /// one /48); 120 by default.
    pub session_per_minute: NonZeroU32,
    /// Requests for admin pages from one IP address (IPv6: one /64); 600 by default. That is a hundred
    /// members of staff in one office who open a page every ten seconds.
    pub staff_pages_per_minute: NonZeroU32,
    /// Requests with one API key; 6,000 by default, which is a hundred per second. The limit keeps a loop in one
    /// backend from taking the database from the sign-ins.
    pub api_key_per_minute: NonZeroU32,
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
    #[serde(default, deserialize_with = "text::parsed")]
    api_key_per_minute: Option<u32>,
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
        api_key_per_minute: number("api_key_per_minute", raw.api_key_per_minute, 6_000)?,
    })
}
