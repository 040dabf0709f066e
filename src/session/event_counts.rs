//! Counting: hours that are over are counted once, so that nobody waits for it who looks.

use std::time::Duration;

use sqlx::PgPool;

use crate::store::deadline::in_time;
use crate::store::error::Error;
use crate::store::event_counts::count;

/// Between two rounds.
const PAUSE: Duration = Duration::from_mins(5);

/// Counts every hour that is over.
///
/// # Errors
/// See [`Error`]; what was counted before stays so.
pub async fn catch_up(pool: &PgPool) -> Result<(), Error> {
    while in_time(count(pool)).await? {}
    Ok(())
}

/// Counts for as long as the program runs. Several instances may: one at a time does.
pub async fn keep_counting(pool: PgPool) {
    while !pool.is_closed() {
        if let Err(error) = catch_up(&pool).await {
            tracing::warn!(%error, "what happened could not be counted; it is tried again later");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
