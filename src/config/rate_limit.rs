//! `[default.rate_limit]`: rate limits for one caller.

use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer};

use super::text;

/// The highest accepted rate. A higher one would not limit anything.
const MAX: u32 = 1_000_000;

/// Rates in requests per minute. One minute's worth may come at once; the allowance refills evenly.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// Turns all limits on or off; on by default.
    #[serde(deserialize_with = "text::flag")]
    pub enabled: bool,
    /// Sign-ins from one IP address (IPv6: one /64, and sixteen times as many from one /48); 60 by
    /// default. Staff sign-ins have a counter of their own.
    ///
    /// A mobile carrier has some thousand phones behind one IPv4 address. A phone signs in about
    /// once in the life of a refresh token. If a release of the app signs a thousand phones out,
    /// they are back within a quarter of an hour. Each attempt may cost a call to a provider.
    #[serde(deserialize_with = "rate")]
    pub sign_in_per_minute: NonZeroU32,
    /// Refreshes from one IP address (IPv6: one /64, and sixteen times as many from one /48); 600
    /// by default.
    ///
    /// A phone in use refreshes once in the life of an access token: at 15 minutes that is nine
    /// thousand phones in use behind one IP address. The limit protects the database. Guessing
    /// needs no limit: there are 2²⁵⁶ refresh tokens.
    #[serde(deserialize_with = "rate")]
    pub refresh_per_minute: NonZeroU32,
    /// Requests of one session, which is one phone, from one IP address (IPv6: one /64, and sixteen
    /// times as many from one /48); 120 by default.
    #[serde(deserialize_with = "rate")]
    pub session_per_minute: NonZeroU32,
    /// Requests for admin pages from one IP address (IPv6: one /64); 600 by default. That is a
    /// hundred members of staff in one office who open a page every ten seconds.
    #[serde(deserialize_with = "rate")]
    pub staff_pages_per_minute: NonZeroU32,
    /// Requests with one API key; 6,000 by default, which is a hundred per second. The limit keeps
    /// a loop in one backend from taking the database from the sign-ins.
    #[serde(deserialize_with = "rate")]
    pub api_key_per_minute: NonZeroU32,
}

impl Default for RateLimit {
    fn default() -> Self {
        let rate = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self {
            enabled: true,
            sign_in_per_minute: rate(60),
            refresh_per_minute: rate(600),
            session_per_minute: rate(120),
            staff_pages_per_minute: rate(600),
            api_key_per_minute: rate(6_000),
        }
    }
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroU32, D::Error> {
    let remedy = "set it to 1 to 1000000 requests a minute, or `rate_limit.enabled` to false";
    let number = text::number(deserializer, 1..=MAX, remedy)?;
    Ok(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
}
