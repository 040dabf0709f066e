//! No wait without end. PostgreSQL keeps our time limits, but one whose machine is gone keeps none, and its
//! connections look alive for a quarter of an hour.

use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use super::Error;
use crate::clock;

/// Longest time for a request, or for a statement that no request waits for: longer than PostgreSQL lets a
/// statement run, and less than a proxy waits.
pub const LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for a sign of life.
const PING: Duration = Duration::from_secs(2);
/// For how long after a wait that was given up a connection that comes back has to show one, in seconds.
const DOUBT: i64 = 60;

/// When a wait was last given up.
static GIVEN_UP: AtomicI64 = AtomicI64::new(i64::MIN);

/// What comes of some work, unless it takes too long.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let done = timeout(limit, &mut work).await.ok();
    if done.is_none() {
        // Before `work` ends, and with it what gives its connection back.
        GIVEN_UP.store(clock::now(), Ordering::Relaxed);
    }
    done
}

/// Runs what no request waits for.
///
/// # Errors
/// The work's own, or that it took longer than [`LIMIT`].
pub async fn in_time<T, E: From<Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let late = || Err(Error::Unavailable(sqlx::Error::PoolTimedOut).into());
    within(LIMIT, work).await.unwrap_or_else(late)
}

/// Whether a connection may go back to the pool. The pool would wait for as long as it takes for the rest of an
/// answer that nobody waits for any more; that costs a place in it.
///
/// # Errors
/// It may not.
pub async fn returns(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    if clock::now().saturating_sub(GIVEN_UP.load(Ordering::Relaxed)) < DOUBT {
        timeout(PING, connection.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
    }
    Ok(true)
}
