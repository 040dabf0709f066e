//! Pruning: what has served its time goes, and what deletions leave to forget, a little at a time.

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use super::forget;
use crate::store::deadline::in_time;
use crate::store::{Error, partitions, prune};

/// Rows of one statement.
const BATCH: i64 = 1000;
/// Rows that one statement looks at.
const STEP: i64 = 10_000;
/// Between two rounds.
const PAUSE: Duration = Duration::from_mins(10);

/// How much stays.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Days after which events go.
    pub event_days: u32,
    /// Sessions that an identity may have.
    pub sessions_per_identity: u32,
}

/// What a round has deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Sessions whose refresh token has expired.
    pub sessions: usize,
    /// Sessions beyond what an identity may have.
    pub surplus_sessions: usize,
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
pub async fn prune(pool: &PgPool, limits: Limits) -> Result<Pruned, Error> {
    let Limits { event_days, sessions_per_identity } = limits;
    in_time(async { partitions::keep(&mut *pool.acquire().await?, Some(event_days)).await }).await?;
    Ok(Pruned {
        sessions: walk(|after| prune::sessions(pool, after, STEP)).await?,
        surplus_sessions: walk(|after| prune::surplus_sessions(pool, after, sessions_per_identity, STEP))
            .await?,
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

/// Goes through all rows step by step, from where the one before ended; returns how many it was about.
async fn walk<S: Future<Output = Result<(usize, Option<Uuid>), Error>>>(
    step: impl Fn(Uuid) -> S,
) -> Result<usize, Error> {
    let (mut rows, mut after) = (0, Uuid::nil());
    loop {
        let (found, last) = in_time(step(after)).await?;
        rows += found;
        let Some(last) = last else { return Ok(rows) };
        after = last;
    }
}

/// Prunes for as long as the program runs. Several instances may: they skip each other's rows.
pub async fn keep_pruning(pool: PgPool, limits: Limits) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if pool.is_closed() {
            return;
        }
        match prune(&pool, limits).await {
            Ok(pruned) if pruned == Pruned::default() => {}
            Ok(Pruned { sessions, surplus_sessions, staff_sessions, events, forgotten }) => {
                tracing::info!(sessions, surplus_sessions, staff_sessions, events, forgotten, "pruned");
            }
            Err(error) => tracing::warn!(%error, "pruning failed; it is tried again later"),
        }
    }
}
