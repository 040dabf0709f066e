//! Staff access to the admin pages: granted, changed and revoked.

use sqlx::PgPool;

use crate::admin::staff::store::{Changed, add, remove, reset};
use crate::domain::actor::By;
use crate::domain::email::Email;
use crate::domain::staff::Role;
use crate::store::error::{Error, retrying};

/// Grants a person access, or changes their role.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn give(pool: &PgPool, email: &Email, role: Role, by: By<'_>) -> Result<Changed, Error> {
    retrying!(add(pool, email.folded(), role, by))
}

/// Revokes a person's access, and ends their sessions.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn take_away(pool: &PgPool, email: &Email, by: By<'_>) -> Result<Changed, Error> {
    retrying!(remove(pool, email.folded(), by))
}

/// Clears a member's pinned identity, so that the next sign-in pins it again, and ends their sessions.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn forget_identity(pool: &PgPool, email: &Email, by: By<'_>) -> Result<Changed, Error> {
    retrying!(reset(pool, email.folded(), by))
}
