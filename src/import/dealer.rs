//! Distributes rows among the writers, so that rows of one user are written in their order.

use std::hash::{BuildHasher, RandomState};

use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::row::Person;
use crate::domain::email::Email;

/// The number of rows in one transaction. A sign-in of one of these users waits for its end, a fraction of a second.
pub const BATCH: usize = 10_000;
/// The largest batch in bytes of the file, for long rows.
const BATCH_BYTES: u64 = 16 << 20;

/// Rows for one transaction, with their line numbers.
pub struct Batch {
    pub rows: Vec<(u64, Person)>,
    /// Their size in the file, in bytes.
    bytes: u64,
    /// The number of bytes of the file up to the last of them.
    pub position: u64,
}

impl Batch {
    fn new() -> Self {
        Self { rows: Vec::with_capacity(BATCH), bytes: 0, position: 0 }
    }

    fn add(&mut self, line: u64, person: Person, bytes: u64, position: u64) {
        self.rows.push((line, person));
        (self.bytes, self.position) = (self.bytes + bytes, position);
    }

    const fn is_full(&self) -> bool {
        self.rows.len() >= BATCH || self.bytes >= BATCH_BYTES
    }
}

/// A job for a writer.
pub enum Job {
    Write(Batch),
    /// Write all deferred rows, then confirm.
    Finish(oneshot::Sender<()>),
}

/// Distributes rows among the writers, in one batch per writer.
///
/// A row without an e-mail address may belong to a user whom another writer has. Such rows wait until all rows
/// before them are written, and the rows after them wait for them.
pub struct Dealer<'a> {
    queues: &'a [Sender<Job>],
    hasher: RandomState,
    with_address: Vec<Batch>,
    without: Vec<Batch>,
    position: u64,
}

/// The writers have stopped; their own result has the error.
pub struct Gone;

impl<'a> Dealer<'a> {
    pub fn new(queues: &'a [Sender<Job>]) -> Self {
        let batches = || queues.iter().map(|_| Batch::new()).collect();
        Self { queues, hasher: RandomState::new(), with_address: batches(), without: batches(), position: 0 }
    }

    pub fn add(&mut self, line: u64, person: Person, position: u64) -> Result<(), Gone> {
        let bytes = position.saturating_sub(self.position);
        self.position = position;
        let whose = match (&person.email, person.id, person.identities.first()) {
            (Some(email), ..) => self.hasher.hash_one(Email::folded(email)),
            (None, Some(id), _) => self.hasher.hash_one(id),
            (None, None, identity) => self.hasher.hash_one(identity.map(|it| (&it.provider, &it.subject))),
        };
        let number = usize::try_from(whose % self.queues.len() as u64).unwrap_or_default();
        if person.email.is_none() {
            self.without[number].add(line, person, bytes, position);
            return if self.without[number].is_full() { self.flush() } else { Ok(()) };
        }
        let batch = &mut self.with_address[number];
        batch.add(line, person, bytes, position);
        if batch.is_full() {
            let batch = std::mem::replace(batch, Batch::new());
            self.queues[number].blocking_send(Job::Write(batch)).map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Sends all batches to the writers, and waits until they are written.
    pub fn flush(&mut self) -> Result<(), Gone> {
        for batches in [&mut self.with_address, &mut self.without] {
            for (batch, queue) in batches.iter_mut().zip(self.queues) {
                let batch = std::mem::replace(batch, Batch::new());
                queue.blocking_send(Job::Write(batch)).map_err(|_| Gone)?;
            }
            let written = self.queues.iter().map(|queue| {
                let (say, hear) = oneshot::channel();
                queue.blocking_send(Job::Finish(say)).map(|()| hear)
            });
            for written in written.collect::<Vec<_>>() {
                written.map_err(|_| Gone)?.blocking_recv().map_err(|_| Gone)?;
            }
        }
        Ok(())
    }
}
