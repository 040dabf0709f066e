//! Turns at a row. Whoever waits for a row that somebody else has locked holds a connection meanwhile, and in the
//! database each of several waiters waits for longer than the one before. So few wait there, the others wait here,
//! and all of them for one time in all.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::Semaphore;

use super::Error;
use super::deadline::within;

/// Longest time for the wait and the work together: longer than PostgreSQL lets one wait for a lock.
const LIMIT: Duration = Duration::from_secs(3);
/// The part of a pool's connections that is there for one row.
const SHARE: u32 = 4;

/// A pool, since a process may have several services, and a hash of what names the row.
type Key = (usize, u64);

static ROWS: LazyLock<Mutex<HashMap<Key, Weak<Semaphore>>>> = LazyLock::new(Mutex::default);
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The places at a row, for as long as somebody wants one.
struct Row {
    key: Key,
    places: Arc<Semaphore>,
}

impl Row {
    fn named(pool: &PgPool, name: impl Hash) -> Self {
        let key = (Arc::as_ptr(&pool.connect_options()).addr(), HASHER.hash_one(name));
        let mut rows = rows();
        let places = rows.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let places =
                Arc::new(Semaphore::new((pool.options().get_max_connections() / SHARE).max(1) as usize));
            rows.insert(key, Arc::downgrade(&places));
            places
        });
        Self { key, places }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        let mut rows = rows();
        if Arc::strong_count(&self.places) == 1 {
            rows.remove(&self.key);
        }
    }
}

fn rows() -> MutexGuard<'static, HashMap<Key, Weak<Semaphore>>> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a statement that locks the row of that name, when it is its turn.
///
/// # Errors
/// The statement's own, or [`Error::Unavailable`] when it took too long, the wait included. Whether the statement
/// takes effect is unknown then.
pub async fn in_turn<T>(
    pool: &PgPool,
    name: impl Hash,
    statement: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let row = Row::named(pool, name);
    let done = within(LIMIT, async {
        // They are never closed.
        let _place = row.places.acquire().await.map_err(|_| Error::late())?;
        statement.await
    });
    done.await.unwrap_or_else(|| Err(Error::late()))
}
