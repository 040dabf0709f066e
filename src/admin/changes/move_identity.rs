//! Moving of an identity to the user to whom it belongs.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, pair, retrying};
use crate::admin::changes::decision::{LinkedIdentity, Person};
use crate::admin::changes::store;
use crate::domain::actor::By;

/// The preview of a move.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The identity's current user.
    pub from: Person,
    /// The identity's new user.
    pub to: Person,
    /// The identity.
    pub identity: LinkedIdentity,
}

impl Preview {
    /// Returns `true` if `from` is left without an identity.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.from.identities.len() == 1
    }

    /// Returns the fingerprint that confirms this preview.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("move", &[&self.from, &self.to], Some(self.identity.identity.id))
    }
}

/// Returns the preview of a move, or `None` if there are no two such users or the identity is not the first one's.
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

/// Moves the identity, if both users still have the fingerprint `seen`. Its sessions end; the users' e-mail addresses
/// stay as they are.
///
/// # Errors
/// See [`Error`]. Nothing was written, unless the connection broke: then everything may have been.
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
            retrying!(store::move_identity(pool, identity, &from, &to, by)).map(Outcome::from)
        }
    }
}
