//! Delete a user for them, as `DELETE /api/v1/me` does.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, person, retrying};
use crate::domain::look_after::{self, Person, Refused};
use crate::session::forget;
use crate::store::staff_access::By;
use crate::store::users::{self, DeletedBy, Deletion};

/// A deletion that has yet to be made.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Who goes.
    pub person: Person,
    /// Whether they may be deleted.
    pub verdict: Result<(), Refused>,
}

impl Preview {
    /// What confirms that this was seen.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("delete", &[&self.person], None)
    }
}

/// Shows what deleting would do; none where there is no such user.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, user: Uuid, actor: &str) -> Result<Option<Preview>, Error> {
    let person = person(pool, user).await?;
    Ok(person.map(|person| {
        let verdict = look_after::delete(&person, actor);
        Preview { person, verdict }
    }))
}

/// Deletes the user, if they are as the fingerprint says, with all that is theirs.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps all of it; see [`Error`].
pub async fn delete(pool: &PgPool, user: Uuid, seen: &str, by: By<'_>) -> Result<Outcome, Error> {
    let Some(preview) = preview(pool, user, by.actor.name()).await? else { return Ok(Outcome::NotFound) };
    match preview.verdict {
        Err(refused) => Ok(Outcome::Refused(refused)),
        Ok(()) if preview.fingerprint() != seen => Ok(Outcome::Changed),
        Ok(()) => {
            let by = DeletedBy::Staff(by, preview.person.updated_at);
            match retrying!(users::delete(pool, user, by))? {
                Deletion::Done(traces) => {
                    forget::begin(pool, &traces).await;
                    Ok(Outcome::Done)
                }
                Deletion::NotFound => Ok(Outcome::Changed),
                Deletion::NotPermitted => Ok(Outcome::NotPermitted),
            }
        }
    }
}
