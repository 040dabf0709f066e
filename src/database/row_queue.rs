//! At most one statement per instance waits for a row's lock; the others queue here, within one
//! time limit. A statement that waits in the database holds a connection meanwhile, and each
//! further waiter there waits longer than the one before.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::database::error::Error;

/// Time limit for the wait. The statement has PostgreSQL's own.
const LIMIT: Duration = Duration::from_secs(1);

/// The pool, since a process may run several services, and a hash of the row's name.
type Key = (usize, u64);

static ROWS: LazyLock<Mutex<HashMap<Key, Weak<Semaphore>>>> = LazyLock::new(Mutex::default);
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The permits of a row. They exist while a caller needs one.
struct Row {
    key: Key,
    permits: Arc<Semaphore>,
}

impl Row {
    fn named(pool: &PgPool, name: impl Hash, permits: usize) -> Self {
        let key = (
            std::ptr::from_ref(pool.options()).addr(),
            HASHER.hash_one(name),
        );
        let mut rows = rows();
        let permits = rows.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let permits = Arc::new(Semaphore::new(permits));
            rows.insert(key, Arc::downgrade(&permits));
            permits
        });
        Self { key, permits }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        let mut rows = rows();
        if Arc::strong_count(&self.permits) == 1 {
            rows.remove(&self.key);
        }
    }
}

fn rows() -> MutexGuard<'static, HashMap<Key, Weak<Semaphore>>> {
    ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Permits one statement of a name to run. It is free again when dropped.
pub(super) struct Permit {
    // Dropped first: the row exists while a permit is taken.
    _permit: OwnedSemaphorePermit,
    _row: Row,
}

/// Waits for one of the `permits` of a name. Returns [`Error::Unavailable`] if no permit is free in
/// time.
pub(super) async fn permit(
    pool: &PgPool,
    name: impl Hash,
    permits: usize,
) -> Result<Permit, Error> {
    let row = Row::named(pool, name, permits);
    let permit = timeout(LIMIT, row.permits.clone().acquire_owned())
        .await
        .map_err(|_| Error::late())?;
    // The semaphore is never closed.
    Ok(Permit {
        _permit: permit.map_err(|_| Error::late())?,
        _row: row,
    })
}

/// Runs a statement that locks the row called `name`, when its turn comes. Returns
/// [`Error::Unavailable`] if its turn does not come in time.
pub async fn serialized<T>(
    pool: &PgPool,
    name: impl Hash,
    statement: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let _permit = permit(pool, name, 1).await?;
    statement.await
}
