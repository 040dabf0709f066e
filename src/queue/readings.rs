//! Periodic readings of the queues of one kind, for claims, metrics and staff.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;
use tokio::time::sleep;

use super::tasks::Stop;
use crate::clock;
use crate::database::{Database, Error};

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(15);
/// The number of readings from a full reading of the queues to the next, which takes ten minutes. A
/// full reading finds rows that became due in a transaction of several minutes, or before the
/// database's clock changed.
const WHOLE: u32 = 40;

/// The state of a queue. Numbers end at [`COUNTED`](Self::COUNTED).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The webhook's name, or the provider's.
    pub name: String,
    pub waiting: i64,
    #[serde(with = "time::serde::rfc3339::option")]
    pub oldest_at: Option<OffsetDateTime>,
    pub parked: i64,
    /// The failure of one of the rows.
    pub failure: Option<String>,
    /// No row is due before that time; `None` while it is not known. A row becomes due in a
    /// transaction that commits later, but within half a minute
    /// ([`LIMIT`](crate::database::LIMIT)). So a claim does not begin with rows that were
    /// done long ago, which stay in the index as long as any snapshot, such as a dump's, is older.
    #[serde(skip)]
    pub since: Option<OffsetDateTime>,
}

impl Summary {
    /// The highest number of rows that is counted. A longer queue would make each reading slow.
    pub const COUNTED: i64 = 100_000;

    pub fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns true if the rows need a person: some are parked, or the oldest waits for more than
    /// ten minutes.
    pub fn is_behind(&self) -> bool {
        self.parked > 0
            || self
                .oldest_at
                .is_some_and(|at| clock::now() - at.unix_timestamp() > 600)
    }
}

/// The queues of one kind, as they were last read.
#[derive(Debug, Default)]
pub struct Readings(Mutex<Vec<Summary>>);

impl Readings {
    pub fn queues(&self) -> Vec<Summary> {
        self.lock().clone()
    }

    pub fn set(&self, queues: Vec<Summary>) {
        *self.lock() = queues;
    }

    /// Returns the time before which no row of a queue is due, or `None` before the first reading.
    pub fn since(&self, name: &str) -> Option<OffsetDateTime> {
        self.lock().iter().find(|queue| queue.name == name)?.since
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Summary>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the queues until it is stopped or the database is closed. `read` gets the previous
    /// reading, to skip rows that were due before it. Logs an error as `problem`.
    pub async fn keep_reading<R: Future<Output = Result<Vec<Summary>, Error>>>(
        &self,
        database: &Database,
        mut stop: Stop,
        read: impl Fn(Database, Vec<Summary>) -> R,
        problem: &str,
    ) {
        for reading in (0..WHOLE).cycle() {
            if database.is_closed() || *stop.borrow() {
                return;
            }
            let mut known = self.queues();
            if reading == 0 {
                for queue in &mut known {
                    queue.since = None;
                }
            }
            let queues = database.run(|_| read(database.clone(), known.clone()));
            match queues.await {
                Ok(queues) => self.set(queues),
                Err(error) => tracing::warn!(%error, "{problem}"),
            }
            tokio::select! {
                // It fails only if the sender is gone, which is the end as well.
                _ = stop.changed() => {}
                () = sleep(PAUSE) => {}
            }
        }
    }
}
