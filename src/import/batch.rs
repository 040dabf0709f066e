//! Import of users from another system, batch by batch.
//!
//! Existing users are not changed, with two exceptions. A user whom an import created, and who has not signed in since,
//! gets further identities from further rows. So does a user who has proved the e-mail address that a row marks as
//! verified, as at a sign-in with it. So a row opens an account to an identity only if the file vouches for the e-mail
//! address; an unverified one opens none.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use sqlx::PgPool;
use uuid::Uuid;

use super::row::{Person, Refused};
use super::write::{self, Arrival};
use crate::domain::email::Email;
use crate::store::Error;
use crate::store::error::retrying;

/// The result of importing some rows.
#[derive(Debug, Default)]
pub struct Done {
    /// Number of rows that wrote something.
    pub imported: u64,
    /// Number of users created.
    pub users: u64,
    /// Number of identities created.
    pub identities: u64,
    /// Number of rows whose data all existed.
    pub already: u64,
    /// Refused rows, by line.
    pub refused: Vec<(u64, Refused)>,
}

/// An import in batches.
#[derive(Debug)]
pub struct Import<'a> {
    pool: &'a PgPool,
    event: Uuid,
    actor: &'a str,
    /// Rows that wait for those that they repeat.
    waiting: Vec<(u64, Person)>,
    /// True if all users of the last batch were new, so that those of the next may be, too.
    unseen: bool,
    hasher: RandomState,
}

impl<'a> Import<'a> {
    /// Begins an import, which is counted in the event with that id.
    #[must_use]
    pub fn new(pool: &'a PgPool, event: Uuid, actor: &'a str) -> Self {
        Self { pool, event, actor, waiting: Vec::new(), unseen: false, hasher: RandomState::new() }
    }

    /// Imports rows, each with its line. Those that repeat earlier ones may wait for the next call.
    ///
    /// # Errors
    /// Nothing of this batch was written, unless the connection broke: then all of it may have been.
    pub async fn bring_in(&mut self, rows: Vec<(u64, Person)>) -> Result<Done, Error> {
        let mut batch = std::mem::take(&mut self.waiting);
        batch.extend(rows);
        let (lines, arrivals) = self.arrivals(batch);
        let (pool, event, actor) = (self.pool, self.event, self.actor);
        // If it fails, nothing was written, or the next statement finds what was.
        let guess =
            if self.unseen { write::bring_in(pool, &arrivals, true, event, actor).await.ok() } else { None };
        let judged = match guess {
            Some(judged) => judged,
            None => retrying!(write::bring_in(pool, &arrivals, false, event, actor))?,
        };
        self.unseen = judged.already + judged.linked == 0 && judged.refused.is_empty();
        let mut later = judged.later.iter().copied().peekable();
        for (number, (line, arrival)) in lines.iter().zip(arrivals).enumerate() {
            if later.next_if_eq(&number).is_some() {
                self.waiting.push((*line, arrival.person));
            }
        }
        Ok(Done {
            imported: judged.users + judged.linked,
            users: judged.users,
            identities: judged.identities,
            already: judged.already,
            refused: judged.refused.into_iter().map(|(number, why)| (lines[number], why)).collect(),
        })
    }

    /// Returns the number of waiting rows. A call of [`Self::bring_in`] without further ones leaves fewer.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Marks rows that have something in common with an earlier one. It compares mere hashes: a row that is marked
    /// wrongly only waits.
    fn arrivals(&self, batch: Vec<(u64, Person)>) -> (Vec<u64>, Vec<Arrival>) {
        let mut seen = HashSet::with_capacity(batch.len() * 3);
        let mut lines = Vec::with_capacity(batch.len());
        let arrivals = batch.into_iter().map(|(line, person)| {
            lines.push(line);
            let mut repeats = false;
            let mut see = |hash| repeats |= !seen.insert(hash);
            if let Some(id) = person.id {
                see(self.hasher.hash_one(id));
            }
            if let Some(email) = &person.email {
                see(self.hasher.hash_one(Email::folded(email)));
            }
            for identity in &person.identities {
                see(self.hasher.hash_one((&identity.provider, &identity.subject)));
            }
            Arrival { person, repeats }
        });
        let arrivals = arrivals.collect();
        (lines, arrivals)
    }
}
