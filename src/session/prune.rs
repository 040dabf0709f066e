//! Pruning: what has served its time goes, a little at a time.

use std::time::Duration;

use sqlx::PgPool;

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
    /// Events past their retention.
    pub events: usize,
}

/// Deletes everything that is due, batch by batch.
///
/// # Errors
/// See [`Error`]; what was deleted before stays deleted.
pub async fn prune(pool: &PgPool, event_days: u32) -> Result<Pruned, Error> {
    let mut pruned = Pruned::default();
    loop {
        let batch = prune::refresh_tokens(pool, BATCH).await?;
        pruned.refresh_tokens += batch;
        if batch == 0 {
            break;
        }
    }
    loop {
        let batch = prune::events(pool, event_days, BATCH).await?;
        pruned.events += batch;
        if batch == 0 {
            break;
        }
    }
    Ok(pruned)
}

/// Prunes for as long as the program runs. Several instances may: they skip each other's rows.
pub async fn keep_pruning(pool: PgPool, event_days: u32) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if pool.is_closed() {
            return;
        }
        match prune(&pool, event_days).await {
            Ok(Pruned { refresh_tokens: 0, events: 0 }) => {}
            Ok(Pruned { refresh_tokens, events }) => tracing::info!(refresh_tokens, events, "pruned"),
            Err(error) => tracing::warn!(%error, "pruning failed; it is tried again later"),
        }
    }
}
