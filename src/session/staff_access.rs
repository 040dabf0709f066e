//! Who may use the admin pages: given, changed and taken away.

use sqlx::PgPool;

use crate::domain::email::Email;
use crate::domain::staff::Role;
use crate::store::error::{Error, retrying};
use crate::store::staff_access::{By, Changed, add, remove, reset};

/// Gives somebody access, or another role.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn give(pool: &PgPool, email: &Email, role: Role, by: By<'_>) -> Result<Changed, Error> {
    retrying!(add(pool, email.folded(), role, by))
}

/// Takes somebody's access away, and ends their sessions.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn take_away(pool: &PgPool, email: &Email, by: By<'_>) -> Result<Changed, Error> {
    retrying!(remove(pool, email.folded(), by))
}

/// Lets somebody's next sign-in decide who they are at the provider, and ends their sessions.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn forget_identity(pool: &PgPool, email: &Email, operator: &str) -> Result<Changed, Error> {
    retrying!(reset(pool, email.folded(), operator))
}
