//! Deletion of a user by staff, with the same effect as `DELETE /api/v1/me`.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, person, retrying};
use crate::admin::changes::decision::{self, Person, Refused};
use crate::domain::actor::By;
use crate::service::forget;
use crate::store::users::{self, DeletedBy, Deletion};

/// The preview of a deletion.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The user to delete.
    pub person: Person,
    /// An error if the user must not be deleted.
    pub verdict: Result<(), Refused>,
}

impl Preview {
    /// Returns the fingerprint that confirms this preview.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("delete", &[&self.person], None)
    }
}

/// Returns the preview of a deletion, or `None` if there is no such user.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, user: Uuid, actor: &str) -> Result<Option<Preview>, Error> {
    let person = person(pool, user).await?;
    Ok(person.map(|person| {
        let verdict = decision::delete(&person, actor);
        Preview { person, verdict }
    }))
}

/// Deletes the user with all of their data, if they still have the fingerprint `seen`.
///
/// # Errors
/// See [`Error`]. Nothing was written, unless the connection broke: then everything may have been.
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
