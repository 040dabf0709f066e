//! No wait without end. PostgreSQL keeps our time limits, but one whose machine is gone keeps none, and its
//! connections look alive for a quarter of an hour.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::{Error, doubt};

/// Longest time for a request, or for a statement that no request waits for: longer than PostgreSQL lets a
/// statement run, and less than a proxy waits.
pub const LIMIT: Duration = Duration::from_secs(20);

/// What comes of some work, unless it takes too long.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let done = timeout(limit, &mut work).await.ok();
    if done.is_none() {
        // Before `work` ends, and with it what gives its connection back.
        doubt::begin();
    }
    done
}

/// Runs what no request waits for.
///
/// # Errors
/// The work's own, or that it took longer than [`LIMIT`].
pub async fn in_time<T, E: From<Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    within(LIMIT, work).await.unwrap_or_else(|| Err(Error::late().into()))
}
