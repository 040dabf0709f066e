//! Unlinking of an identity by staff. The identity then counts as unknown at its next sign-in.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, person, retrying};
use crate::admin::changes::decision::{self, LinkedIdentity, Person, Refused};
use crate::domain::actor::By;

/// The preview of an unlinking.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The identity's user.
    pub person: Person,
    /// The identity.
    pub identity: LinkedIdentity,
    /// An error if the identity must not be unlinked.
    pub verdict: Result<(), Refused>,
}

impl Preview {
    /// Returns `true` if the user is left without an identity.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.person.identities.len() == 1
    }

    /// Returns the fingerprint that confirms this preview.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("unlink", &[&self.person], Some(self.identity.identity.id))
    }
}

/// Returns the preview of an unlinking, or `None` if there is no such user or the identity is not theirs.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, user: Uuid, identity: Uuid) -> Result<Option<Preview>, Error> {
    let person = person(pool, user).await?;
    Ok(person.and_then(|person| {
        let identity = person.identity(identity)?.clone();
        let verdict = decision::unlink(&person);
        Some(Preview { person, identity, verdict })
    }))
}

/// Unlinks the identity, if the user still has the fingerprint `seen`. Its sessions end.
///
/// # Errors
/// See [`Error`]. Nothing was written, unless the connection broke: then everything may have been.
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
            retrying!(super::store::unlink(pool, identity, user, seen, by)).map(Outcome::from)
        }
    }
}
