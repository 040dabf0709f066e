//! Merge two users, where one person has become two.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, fingerprint, pair, retrying};
use crate::domain::look_after::{self, Merged, Person, Refused};
use crate::store;
use crate::store::staff_access::By;

/// A merge that has yet to be made.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Who goes.
    pub from: Person,
    /// Who stays.
    pub into: Person,
    /// What they are like afterwards, or why they are not merged.
    pub verdict: Result<Merged, Refused>,
}

impl Preview {
    /// What confirms that this was seen.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint("merge", &[&self.from, &self.into], None)
    }
}

/// Shows what a merge would do; none where there are not two such users.
///
/// # Errors
/// See [`Error`].
pub async fn preview(pool: &PgPool, from: Uuid, into: Uuid, actor: &str) -> Result<Option<Preview>, Error> {
    let people = pair(pool, from, into).await?;
    Ok(people.map(|(from, into)| {
        let verdict = look_after::merge(&from, &into, actor);
        Preview { from, into, verdict }
    }))
}

/// Merges `from` into `into`, if they are as the fingerprint says. Sessions of `from` end.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps all of it; see [`Error`].
pub async fn merge(pool: &PgPool, from: Uuid, into: Uuid, seen: &str, by: By<'_>) -> Result<Outcome, Error> {
    let Some(preview) = preview(pool, from, into, by.actor.name()).await? else {
        return Ok(Outcome::NotFound);
    };
    match &preview.verdict {
        Err(refused) => Ok(Outcome::Refused(*refused)),
        Ok(_) if preview.fingerprint() != seen => Ok(Outcome::Changed),
        Ok(merged) => {
            let Preview { from, into, .. } = &preview;
            retrying!(store::look_after::merge(pool, from, into, merged, by)).map(Outcome::from)
        }
    }
}
