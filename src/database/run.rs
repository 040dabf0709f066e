//! Runs statements: within a time limit, again after lost races and broken connections, and one
//! after another where they lock the same row.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::database::connections::Database;
use crate::database::error::Error;
use crate::database::health::LIMIT;

/// The time limit for the wait for other statements. PostgreSQL has its own for the row's lock.
const WAIT: Duration = Duration::from_secs(1);

/// An attempt to run a statement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attempt {
    /// An earlier attempt may have taken effect, since its connection broke.
    pub perhaps_done: bool,
}

impl Database {
    /// Runs a statement, and retries it after a lost race or a broken connection. `statement` is
    /// called for each attempt.
    ///
    /// # Errors
    /// Returns the last attempt's error, or [`Error::Disconnected`] after [`LIMIT`].
    pub async fn run<T, F>(&self, statement: impl FnMut(Attempt) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.run_within(LIMIT, statement).await
    }

    /// Runs a statement as [`Self::run`] does, within another time limit.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_within<T, F>(
        &self,
        limit: Duration,
        statement: impl FnMut(Attempt) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (done, _) = self.attempts(limit, statement).await?;
        Ok(done)
    }

    /// Runs a statement as [`Self::run`] does, after the statements that this instance already runs
    /// on the same row. Only one of them waits in the database for the row's lock: a statement that
    /// waits there holds a connection meanwhile, and each further waiter there waits longer than
    /// the one before.
    ///
    /// # Errors
    /// As [`Self::run`], and [`Error::Unavailable`] if the others take too long.
    pub async fn run_on<T, F>(
        &self,
        row: impl Hash,
        mut statement: impl FnMut(Attempt) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let turns = self.turns();
        let row = turns.key(row);
        self.run(|attempt| {
            let statement = statement(attempt);
            async move {
                let _permit = turns.permit(row, 1).await?;
                statement.await
            }
        })
        .await
    }

    /// Makes a change as [`Self::run`] does. `is_undone` is true for an outcome which says that
    /// nothing was done.
    ///
    /// # Errors
    /// As [`Self::run`], and [`Error::Disconnected`] if the last attempt did nothing, but an
    /// earlier one perhaps did.
    pub async fn change<T, F>(
        &self,
        mut statement: impl FnMut() -> F,
        is_undone: impl FnOnce(&T) -> bool,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        match self.attempts(LIMIT, |_| statement()).await? {
            (outcome, Attempt { perhaps_done: true }) if is_undone(&outcome) => {
                Err(Error::Disconnected(sqlx::Error::Protocol(
                    "the change may have been made before".into(),
                )))
            }
            (outcome, _) => Ok(outcome),
        }
    }

    /// Attempts to run a statement until it succeeds or cannot. Returns its result and the attempt
    /// that succeeded.
    async fn attempts<T, F>(
        &self,
        limit: Duration,
        mut statement: impl FnMut(Attempt) -> F,
    ) -> Result<(T, Attempt), Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let attempts = async {
            let mut retries = Retries::default();
            loop {
                match statement(retries.attempt).await {
                    Err(error) => {
                        self.note(&error);
                        retries.after(error).await?;
                    }
                    Ok(done) => return Ok((done, retries.attempt)),
                }
            }
        };
        timeout(limit, attempts)
            .await
            .unwrap_or_else(|_| Err(Error::silent(limit)))
    }
}

/// Decides whether to retry a failed statement.
#[derive(Debug)]
struct Retries {
    failures: u32,
    since: Instant,
    attempt: Attempt,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            failures: 0,
            since: Instant::now(),
            attempt: Attempt::default(),
        }
    }
}

impl Retries {
    /// Maximum number of attempts before the caller gets the error.
    const ATTEMPTS: u32 = 8;
    /// Maximum number of attempts after conflicts between transactions.
    const ATTEMPTS_IN_CONFLICT: u32 = 4;
    /// Time during which broken connections are replaced. A pooler without a free server delays
    /// each attempt.
    const TIMEOUT: Duration = Duration::from_secs(2);

    /// Waits briefly if a retry can help. Returns the error itself if a retry cannot help.
    async fn after(&mut self, error: Error) -> Result<(), Error> {
        self.failures += 1;
        self.attempt.perhaps_done |= matches!(error, Error::Disconnected(_));
        let transient = match error {
            Error::Raced(_) => true,
            Error::Disconnected(_) => self.since.elapsed() < Self::TIMEOUT,
            Error::Unavailable(_) | Error::Broken(_) => false,
        };
        let attempts = if error.is_conflict() {
            Self::ATTEMPTS_IN_CONFLICT
        } else {
            Self::ATTEMPTS
        };
        if !transient || self.failures >= attempts {
            return Err(error);
        }
        // The clock's last digits serve as jitter that keeps the losers of a race apart.
        let jitter = u64::from(clock::subsecond_nanos() % 1_000);
        sleep(Duration::from_micros(
            jitter * u64::from(self.failures.pow(2)),
        ))
        .await;
        Ok(())
    }
}

/// The rows on which statements run one after another, and lists, of which some run at a time.
#[derive(Debug, Default)]
pub(super) struct Turns {
    rows: Mutex<HashMap<u64, Weak<Semaphore>>>,
    hasher: RandomState,
}

impl Turns {
    /// Returns the key of a row's name. Two names with the same key only wait for each other.
    pub(super) fn key(&self, name: impl Hash) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Waits for one of the `permits` of a row. Returns [`Error::Unavailable`] if no permit is free
    /// in time.
    pub(super) async fn permit(&self, key: u64, permits: usize) -> Result<Permit<'_>, Error> {
        let row = Row::of(self, key, permits);
        let permit = timeout(WAIT, row.permits.clone().acquire_owned()).await;
        // The semaphore is never closed.
        let permit = permit.ok().and_then(Result::ok).ok_or_else(Error::late)?;
        Ok(Permit {
            _permit: permit,
            _row: row,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Semaphore>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permits of a row. They exist while a caller needs one.
#[derive(Debug)]
struct Row<'t> {
    turns: &'t Turns,
    key: u64,
    permits: Arc<Semaphore>,
}

impl<'t> Row<'t> {
    fn of(turns: &'t Turns, key: u64, permits: usize) -> Self {
        let mut rows = turns.lock();
        let permits = rows.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let permits = Arc::new(Semaphore::new(permits));
            rows.insert(key, Arc::downgrade(&permits));
            permits
        });
        Self {
            turns,
            key,
            permits,
        }
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        let mut rows = self.turns.lock();
        if Arc::strong_count(&self.permits) == 1 {
            rows.remove(&self.key);
        }
    }
}

/// Permits one statement to run. It is free again when dropped.
#[derive(Debug)]
pub(super) struct Permit<'t> {
    // Dropped first: the row exists while a permit is taken.
    _permit: OwnedSemaphorePermit,
    _row: Row<'t>,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use sqlx::postgres::PgPool;

    use super::*;

    #[tokio::test]
    async fn a_change_that_was_perhaps_made_is_not_attempted_again() {
        let pool = PgPool::connect_lazy("postgres://nowhere.invalid").unwrap();
        let attempts = AtomicU32::new(0);
        let change = async || match attempts.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::Disconnected(sqlx::Error::WorkerCrashed)),
            _ => Ok("undone"),
        };
        let done = Database::from(pool)
            .change(change, |done| *done == "undone")
            .await;
        assert!(matches!(done, Err(Error::Disconnected(_))), "{done:?}");
        assert_eq!(attempts.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_broken_connection_is_replaced_at_once_or_not_at_all() {
        let broke = || Error::Disconnected(sqlx::Error::Protocol("query_wait_timeout".into()));
        let mut quick = Retries::default();
        assert!(quick.after(broke()).await.is_ok());
        let long_ago = Instant::now().checked_sub(Retries::TIMEOUT).unwrap();
        let mut slow = Retries {
            since: long_ago,
            ..Retries::default()
        };
        assert!(
            slow.after(Error::Raced(None)).await.is_ok(),
            "a race is retried"
        );
        assert!(slow.after(broke()).await.is_err());
    }
}
