//! Turns at a row. A statement that waits for a locked row holds a connection meanwhile, and each further waiter in the
//! database waits longer than the one before. So only a few wait there; the others wait here, within one time limit.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::Semaphore;

use super::Error;
use super::deadline::within;

/// Time limit for the wait and the statement together. It is longer than PostgreSQL's lock timeout.
const LIMIT: Duration = Duration::from_secs(3);
/// Divisor of the pool's size: one row may occupy at most this part of the connections.
const SHARE: u32 = 4;

/// The pool, since a process may run several services, and a hash of the row's name.
type Key = (usize, u64);

static ROWS: LazyLock<Mutex<HashMap<Key, Weak<Semaphore>>>> = LazyLock::new(Mutex::default);
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The places at a row. They exist while a caller needs one.
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

/// Runs a statement that locks the row called `name`, when its turn comes.
///
/// # Errors
/// Returns the statement's error, or [`Error::Unavailable`] if the wait and the statement together take too long. Then
/// it is unknown if the statement takes effect.
pub async fn in_turn<T>(
    pool: &PgPool,
    name: impl Hash,
    statement: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let row = Row::named(pool, name);
    let done = within(LIMIT, async {
        // The semaphore is never closed.
        let _place = row.places.acquire().await.map_err(|_| Error::late())?;
        statement.await
    });
    done.await.unwrap_or_else(|| Err(Error::late()))
}
