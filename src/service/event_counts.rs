//! Background counting of events: complete hours are counted once, so that no page has to.

use std::time::Duration;

use sqlx::PgPool;

use crate::store::deadline::in_time;
use crate::store::error::Error;
use crate::store::event_counts::count;

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(5);

/// Counts every complete hour.
///
/// # Errors
/// See [`Error`]; earlier counts stay.
pub async fn catch_up(pool: &PgPool) -> Result<(), Error> {
    while in_time(count(pool)).await? {}
    Ok(())
}

/// Counts for as long as the program runs. Of several instances, one does so at a time.
pub async fn keep_counting(pool: PgPool) {
    while !pool.is_closed() {
        if let Err(error) = catch_up(&pool).await {
            tracing::warn!(%error, "counting events failed and will be retried");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
