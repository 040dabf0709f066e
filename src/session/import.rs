//! Bring users in who existed elsewhere, batch after batch.
//!
//! Nobody who is there is changed, with two exceptions: whom an import created, and who has not been here since, gets a
//! further identity of theirs from a further row; and so does whoever has proved the address that the row says is
//! verified, as they would at a sign-in with it. So a row is a way to somebody's account only where the file vouches for
//! their address, and one that is not verified leads to nobody.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use sqlx::PgPool;
use uuid::Uuid;

use crate::domain::email::Email;
use crate::domain::import::{Person, Refused};
use crate::store::Error;
use crate::store::error::retrying;
use crate::store::import::{self, Arrival};

/// What became of some rows.
#[derive(Debug, Default)]
pub struct Done {
    /// Rows that wrote something.
    pub imported: u64,
    /// Users that were created.
    pub users: u64,
    /// Identities that were created.
    pub identities: u64,
    /// Rows of which everything was there.
    pub already: u64,
    /// Rows that are refused, by their lines.
    pub refused: Vec<(u64, Refused)>,
}

/// One after the other, the batches of an import.
#[derive(Debug)]
pub struct Import<'a> {
    pool: &'a PgPool,
    event: Uuid,
    actor: &'a str,
    /// Rows that wait for those that they repeat.
    waiting: Vec<(u64, Person)>,
    /// Whether nobody of the last batch was there, so that nobody of the next may be.
    unseen: bool,
    hasher: RandomState,
}

impl<'a> Import<'a> {
    /// Begins. What is brought in is counted in the event of that id.
    #[must_use]
    pub fn new(pool: &'a PgPool, event: Uuid, actor: &'a str) -> Self {
        Self { pool, event, actor, waiting: Vec::new(), unseen: false, hasher: RandomState::new() }
    }

    /// Brings in rows, each with its line. Those that repeat earlier ones may wait for the next call.
    ///
    /// # Errors
    /// Nothing of this batch was written, or, where the connection broke, perhaps all of it.
    pub async fn bring_in(&mut self, rows: Vec<(u64, Person)>) -> Result<Done, Error> {
        let mut batch = std::mem::take(&mut self.waiting);
        batch.extend(rows);
        let (lines, arrivals) = self.arrivals(batch);
        let (pool, event, actor) = (self.pool, self.event, self.actor);
        // Where it fails, nothing was written, or what was is found there.
        let guess =
            if self.unseen { import::bring_in(pool, &arrivals, true, event, actor).await.ok() } else { None };
        let judged = match guess {
            Some(judged) => judged,
            None => retrying!(import::bring_in(pool, &arrivals, false, event, actor))?,
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

    /// How many rows wait. A call without further ones leaves fewer.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Marks those that have something in common with an earlier one. By a mere hash: who is marked for nothing
    /// waits for nothing, and that is all.
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
