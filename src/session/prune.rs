//! Pruning: what has served its time goes, and what deletions leave to forget, a little at a time.

use std::time::Duration;

use sqlx::PgPool;

use super::forget;
use crate::store::deadline::in_time;
use crate::store::{Error, prune};

/// Rows of one statement.
const BATCH: i64 = 1000;
/// Between two rounds.
const PAUSE: Duration = Duration::from_mins(10);

/// What a round has deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Expired refresh tokens; sessions without any go with them.
    pub refresh_tokens: usize,
    /// Sessions of staff that were over.
    pub staff_sessions: usize,
    /// Events past their retention.
    pub events: usize,
    /// Events that held the address of somebody who was deleted. These stay, without it.
    pub forgotten: usize,
}

/// Deletes everything that is due and forgets whom it has to, batch by batch.
///
/// # Errors
/// See [`Error`]; what was deleted before stays deleted.
pub async fn prune(pool: &PgPool, event_days: u32) -> Result<Pruned, Error> {
    Ok(Pruned {
        refresh_tokens: all(|| prune::refresh_tokens(pool, BATCH)).await?,
        staff_sessions: all(|| prune::staff_sessions(pool, BATCH)).await?,
        events: all(|| prune::events(pool, event_days, BATCH)).await?,
        forgotten: forget::finish(pool).await?,
    })
}

/// Deletes batch after batch until one is empty; answers how many rows.
async fn all<B: Future<Output = Result<usize, Error>>>(batch: impl Fn() -> B) -> Result<usize, Error> {
    let mut deleted = 0;
    loop {
        match in_time(batch()).await? {
            0 => return Ok(deleted),
            rows => deleted += rows,
        }
    }
}

/// Prunes for as long as the program runs. Several instances may: they skip each other's rows.
pub async fn keep_pruning(pool: PgPool, event_days: u32) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if pool.is_closed() {
            return;
        }
        match prune(&pool, event_days).await {
            Ok(pruned) if pruned == Pruned::default() => {}
            Ok(Pruned { refresh_tokens, staff_sessions, events, forgotten }) => {
                tracing::info!(refresh_tokens, staff_sessions, events, forgotten, "pruned");
            }
            Err(error) => tracing::warn!(%error, "pruning failed; it is tried again later"),
        }
    }
}
