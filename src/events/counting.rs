//! Background counting of events: each is counted once, so that no page has to count more than those of some minutes.

use std::time::Duration;

use sqlx::PgPool;

use crate::database::{Error, in_time};
use crate::events::counts::count;

/// Events that one statement reads.
const STEP: i64 = 20_000;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(1);

/// Counts all events that are old enough. After an error, earlier counts stay.
pub async fn catch_up(pool: &PgPool) -> Result<(), Error> {
    while in_time(count(pool, STEP)).await? {}
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
