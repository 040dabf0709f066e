//! Merging of two users that are one person.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, pair, retrying};
use crate::admin::changes::decision::{self, Merged, Person, Refused};
use crate::domain::actor::By;

/// The preview of a merge.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The user to remove.
    pub from: Person,
    /// The user who stays.
    pub into: Person,
    /// The data of the merged user, or the reason why the two must not be merged.
    pub verdict: Result<Merged, Refused>,
}

impl Preview {
    /// Returns the fingerprint that confirms this preview.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("merge", &[&self.from, &self.into], None)
    }
}

/// Returns the preview of a merge, or `None` if there are no two such users.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, from: Uuid, into: Uuid, actor: &str) -> Result<Option<Preview>, Error> {
    let people = pair(pool, from, into).await?;
    Ok(people.map(|(from, into)| {
        let verdict = decision::merge(&from, &into, actor);
        Preview { from, into, verdict }
    }))
}

/// Merges `from` into `into`, if both still have the fingerprint `seen`. Sessions of `from` end.
///
/// # Errors
/// See [`Error`]. Nothing was written, unless the connection broke: then everything may have been.
pub async fn merge(pool: &PgPool, from: Uuid, into: Uuid, seen: &str, by: By<'_>) -> Result<Outcome, Error> {
    let Some(preview) = preview(pool, from, into, by.actor.name()).await? else {
        return Ok(Outcome::NotFound);
    };
    match &preview.verdict {
        Err(refused) => Ok(Outcome::Refused(*refused)),
        Ok(_) if preview.fingerprint() != seen => Ok(Outcome::Changed),
        Ok(merged) => {
            let Preview { from, into, .. } = &preview;
            retrying!(super::store::merge(pool, from, into, merged, by)).map(Outcome::from)
        }
    }
}
