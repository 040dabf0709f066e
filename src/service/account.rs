//! Changes that users make to their own account: they name themselves, link and unlink identities, or delete it.

use sqlx::PgPool;
use uuid::Uuid;

use super::erasure;
use crate::config;
use crate::domain::actor::Origin;
use crate::domain::claims::VerifiedClaims;
use crate::domain::user::User;
use crate::store::error::retrying;
pub use crate::store::identities::{Linked, Unlinked};
use crate::store::row_queue::in_turn;
use crate::store::users::{DeletedBy, Deletion};
use crate::store::{Error, identities, users};

/// Sets the name that the user of a session wants to be shown under, or lets the identities say it again. Returns `None`
/// if the session has ended.
///
/// # Errors
/// See [`Error`].
pub async fn set_name(
    pool: &PgPool,
    user: Uuid,
    session: Uuid,
    name: Option<&str>,
    origin: &Origin,
) -> Result<Option<User>, Error> {
    retrying!(in_turn(pool, user, users::set_name(pool, user, session, name, origin)))
}

/// Links a verified identity, with any e-mail address, to the user of a session.
///
/// # Errors
/// See [`Error`].
pub async fn link(
    pool: &PgPool,
    user: Uuid,
    session: Uuid,
    provider: &config::Provider,
    claims: &VerifiedClaims,
    origin: &Origin,
) -> Result<Linked, Error> {
    let proves = provider.policy.proves(claims);
    let link = || identities::link(pool, user, session, &provider.name, claims, proves, origin);
    retrying!(in_turn(pool, user, link()))
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
    retrying!(in_turn(pool, user, identities::unlink(pool, user, session, identity, origin)))
}

/// Deletes a user with all of their data. Returns `false` if there was none: they may have been deleted or merged since
/// the request was authenticated. Their traces in events are erased here, or by the pruner if there are many.
///
/// # Errors
/// See [`Error`].
pub async fn delete(pool: &PgPool, user: Uuid, origin: &Origin) -> Result<bool, Error> {
    let mut perhaps_done = false;
    let deletion = retrying!(async {
        let deletion = users::delete(pool, user, DeletedBy::User(origin)).await;
        deletion.inspect_err(|error| perhaps_done |= matches!(error, Error::Disconnected(_)))
    })?;
    let Deletion::Done(traces) = deletion else { return Ok(perhaps_done) };
    erasure::begin(pool, &traces).await;
    Ok(true)
}
