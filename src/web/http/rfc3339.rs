//! Formats times as text for pages.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns a time as RFC 3339 in UTC, to the second.
pub fn rfc3339(time: OffsetDateTime) -> String {
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}
