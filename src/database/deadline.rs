//! Time limits on our side. PostgreSQL enforces its timeouts, but not when its machine is gone:
//! connections to it then look alive for a quarter of an hour.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::database::error::Error;
use crate::database::health;
pub use crate::database::health::LIMIT;

/// Returns the result of `work`, or `None` if it takes longer than `limit`.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(Some(work));
    let done = timeout(limit, work.as_mut().as_pin_mut()?).await.ok();
    if done.is_none() {
        health::abandon(|| work.set(None));
    }
    done
}

/// Runs work that no request waits for. The error is [`Error::Unavailable`] if it takes longer than
/// [`LIMIT`].
pub async fn in_time<T, E: From<Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    within(LIMIT, work)
        .await
        .unwrap_or_else(|| Err(Error::late().into()))
}
