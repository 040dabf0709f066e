//! The only caller of the system's `now()`.
//!
//! It serves the checks of a provider's claims, the issue time of access tokens, and the half
//! minute in which a reissued refresh token stays the same. Stored data expires by the database's
//! clock, so that all instances agree.

use std::time::SystemTime;

use time::OffsetDateTime;

/// Returns the current time in seconds since 1970-01-01T00:00:00Z (RFC 7519 `NumericDate`).
pub fn now() -> i64 {
    utc().unix_timestamp()
}

/// Returns the nanoseconds within the current second.
pub fn subsecond_nanos() -> u32 {
    utc().nanosecond()
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn system() -> SystemTime {
    SystemTime::now()
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn utc() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}
