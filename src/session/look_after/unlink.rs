//! Unlink an identity for a user. It is nobody's then, and whoever signs in with it is met as any unknown one.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, person, retrying};
use crate::domain::look_after::{self, LinkedIdentity, Person, Refused};
use crate::store;
use crate::store::staff_access::By;

/// An unlinking that has yet to be made.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Whose the identity is.
    pub person: Person,
    /// The identity.
    pub identity: LinkedIdentity,
    /// Whether it may be.
    pub verdict: Result<(), Refused>,
}

impl Preview {
    /// Whether the user is left without any.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.person.identities.len() == 1
    }

    /// What confirms that this was seen.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("unlink", &[&self.person], Some(self.identity.identity.id))
    }
}

/// Shows what unlinking would do; none where there is no such user or the identity is not theirs.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, user: Uuid, identity: Uuid) -> Result<Option<Preview>, Error> {
    let person = person(pool, user).await?;
    Ok(person.and_then(|person| {
        let identity = person.identity(identity)?.clone();
        let verdict = look_after::unlink(&person);
        Some(Preview { person, identity, verdict })
    }))
}

/// Unlinks the identity, if the user is as the fingerprint says. Its sessions end.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps all of it; see [`Error`].
pub async fn unlink(
    pool: &PgPool,
    user: Uuid,
    identity: Uuid,
    seen: &str,
    by: By<'_>,
) -> Result<Outcome, Error> {
    let Some(preview) = preview(pool, user, identity).await? else { return Ok(Outcome::NotFound) };
    match preview.verdict {
        Err(refused) => Ok(Outcome::Refused(refused)),
        Ok(()) if preview.fingerprint() != seen => Ok(Outcome::Changed),
        Ok(()) => {
            let seen = preview.person.updated_at;
            retrying!(store::look_after::unlink(pool, identity, user, seen, by)).map(Outcome::from)
        }
    }
}
