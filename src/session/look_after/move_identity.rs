//! Move an identity to the user whose it is.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, pair, retrying};
use crate::domain::look_after::{LinkedIdentity, Person};
use crate::store::look_after;
use crate::store::staff_access::By;

/// A move that has yet to be made.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Whose the identity is.
    pub from: Person,
    /// Whose it will be.
    pub to: Person,
    /// The identity.
    pub identity: LinkedIdentity,
}

impl Preview {
    /// Whether `from` is left without any.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.from.identities.len() == 1
    }

    /// What confirms that this was seen.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("move", &[&self.from, &self.to], Some(self.identity.identity.id))
    }
}

/// Shows what a move would do; none where there are not two such users, or the identity is not the first one's.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, from: Uuid, identity: Uuid, to: Uuid) -> Result<Option<Preview>, Error> {
    let people = pair(pool, from, to).await?;
    Ok(people.and_then(|(from, to)| {
        let identity = from.identity(identity)?.clone();
        Some(Preview { from, to, identity })
    }))
}

/// Moves the identity, if both users are as the fingerprint says. Its sessions end; the users' addresses stay
/// as they are.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps all of it; see [`Error`].
pub async fn move_identity(
    pool: &PgPool,
    from: Uuid,
    identity: Uuid,
    to: Uuid,
    seen: &str,
    by: By<'_>,
) -> Result<Outcome, Error> {
    match preview(pool, from, identity, to).await? {
        None => Ok(Outcome::NotFound),
        Some(preview) if preview.fingerprint() != seen => Ok(Outcome::Changed),
        Some(Preview { from, to, .. }) => {
            retrying!(look_after::move_identity(pool, identity, &from, &to, by)).map(Outcome::from)
        }
    }
}
