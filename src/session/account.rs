//! What users change about themselves: which identities are theirs, and whether they exist.

use sqlx::PgPool;
use uuid::Uuid;

use crate::domain::claims::VerifiedClaims;
use crate::store::error::retrying;
pub use crate::store::identities::{Linked, Unlinked};
use crate::store::users::Origin;
use crate::store::{Error, identities, users};

/// Links a verified identity, whatever its e-mail address, to the user of a session.
///
/// # Errors
/// See [`Error`].
pub async fn link(
    pool: &PgPool,
    user: Uuid,
    session: Uuid,
    provider: &str,
    claims: &VerifiedClaims,
    origin: &Origin,
) -> Result<Linked, Error> {
    retrying!(identities::link(pool, user, session, provider, claims, origin))
}

/// Unlinks an identity and ends its sessions, unless it is the user's last.
///
/// # Errors
/// See [`Error`].
pub async fn unlink(
    pool: &PgPool,
    user: Uuid,
    session: Uuid,
    identity: Uuid,
    origin: &Origin,
) -> Result<Unlinked, Error> {
    retrying!(identities::unlink(pool, user, session, identity, origin))
}

/// Deletes a user and all that is theirs.
///
/// # Errors
/// See [`Error`].
pub async fn delete(pool: &PgPool, user: Uuid, origin: &Origin) -> Result<(), Error> {
    retrying!(users::delete(pool, user, origin)).map(drop)
}
