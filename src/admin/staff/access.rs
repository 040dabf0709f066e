//! Staff access to the admin pages: granted, changed and revoked.

use sqlx::PgPool;
use time::OffsetDateTime;

use crate::admin::dates::end_of;
use crate::admin::staff::store::{Changed, add, remove, reset};
use crate::clock;
use crate::domain::{Access, By, Email};
use crate::store::{Error, changing, retrying};

/// Grants a person access, or replaces the access that they have.
pub async fn give(
    pool: &PgPool,
    email: &Email,
    access: impl Into<Access>,
    by: By<'_>,
) -> Result<Changed, Error> {
    let access = access.into();
    retrying!(add(pool, email.folded(), access, by))
}

/// Returns the end of access that lasts up to the end of the day `YYYY-MM-DD` in the zone; `None` if it is not a day, or
/// over.
pub fn end(day: &str, zone: Option<&str>) -> Option<OffsetDateTime> {
    end_of(day, zone).filter(|end| end.unix_timestamp() > clock::now())
}

/// Revokes a person's access, and ends their sessions.
pub async fn take_away(pool: &PgPool, email: &Email, by: By<'_>) -> Result<Changed, Error> {
    changing!(remove(pool, email.folded(), by), Changed::Already)
}

/// Clears a member's pinned identity, so that the next sign-in pins it again, and ends their sessions.
pub async fn forget_identity(pool: &PgPool, email: &Email, by: By<'_>) -> Result<Changed, Error> {
    retrying!(reset(pool, email.folded(), by))
}
