//! Pruning: expired rows are deleted, and deleted users are erased from events, in small batches.

use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::erasure;
use crate::provider_tokens::store as provider_tokens;
use crate::store::prune::Look;
use crate::store::{Error, in_time, partitions, prune};
use crate::webhooks::store as webhooks;

/// Rows that one statement deletes, and of sessions those that it reads.
const BATCH: i64 = 1000;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(10);
/// Seconds from the end of a session to a look at it: a week, and a day by which clocks may differ.
const AFTERWARDS: u32 = 8 * 86_400;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Days after which events are deleted.
    pub event_days: u32,
    pub sessions_per_identity: u32,
    /// Lifetime of an unused refresh token in seconds.
    pub refresh_token_ttl: u32,
    /// Maximum lifetime of a session in seconds.
    pub absolute_ttl: u32,
}

impl Limits {
    /// The times at which a session is looked at, with its age in seconds, the last one first.
    const fn looks(self) -> [(Look, u32); 3] {
        let unused = self.refresh_token_ttl + AFTERWARDS;
        [(Look::Oldest, self.absolute_ttl + AFTERWARDS), (Look::Used, 2 * unused), (Look::Unused, unused)]
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Deleted sessions that had expired a week before.
    pub sessions: usize,
    /// Deleted sessions beyond an identity's maximum.
    pub surplus_sessions: usize,
    pub staff_sessions: usize,
    /// Deleted sign-ins of staff that were not completed.
    pub staff_sign_ins: usize,
    pub events: usize,
    /// Events from which a deleted user was erased. The events stay.
    pub forgotten: usize,
    /// Deleted webhook messages whose time to be sent again is over.
    pub webhook_messages: usize,
    /// Deleted ids of messages that providers sent 90 days before.
    pub provider_events: usize,
    /// Deleted hashes of identities that went with their user the day before.
    pub deleted_identities: usize,
    /// Deleted tokens of providers that could not be revoked for two months.
    pub provider_tokens: usize,
}

/// Deletes all expired rows and erases all deleted users, batch by batch.
/// What was deleted before an error stays deleted.
pub async fn prune(pool: &PgPool, limits: Limits) -> Result<Pruned, Error> {
    let Limits { event_days, sessions_per_identity, .. } = limits;
    let kept = in_time(async { partitions::keep(&mut *pool.acquire().await?, Some(event_days)).await }).await;
    if let Err(error) = kept {
        tracing::warn!(%error, "the partitions of `events` were not changed, which will be retried");
    }
    let begin = OffsetDateTime::UNIX_EPOCH;
    Ok(Pruned {
        sessions: expired_sessions(pool, limits).await?,
        surplus_sessions: steps(|| prune::surplus_sessions(pool, sessions_per_identity, BATCH)).await?,
        staff_sessions: all(|| prune::staff_sessions(pool, BATCH)).await?,
        staff_sign_ins: walk(begin, |from| prune::staff_sign_ins(pool, from, BATCH)).await?,
        events: walk(Uuid::nil(), |after| prune::events(pool, after, event_days, BATCH)).await?,
        forgotten: erasure::finish(pool).await?,
        webhook_messages: all(|| webhooks::prune(pool, BATCH)).await?,
        provider_events: walk(begin, |from| prune::provider_events(pool, from, BATCH)).await?,
        deleted_identities: walk(begin, |from| prune::deleted_identities(pool, from, BATCH)).await?,
        provider_tokens: all(|| provider_tokens::prune(pool, BATCH)).await?,
    })
}

pub async fn expired_sessions(pool: &PgPool, limits: Limits) -> Result<usize, Error> {
    let mut deleted = 0;
    for (look, age) in limits.looks() {
        deleted += steps(|| prune::sessions(pool, look, age, BATCH)).await?;
    }
    Ok(deleted)
}

/// Deletes batch after batch until one is empty. Returns the number of rows.
async fn all<B: Future<Output = Result<usize, Error>>>(batch: impl Fn() -> B) -> Result<usize, Error> {
    walk((), |()| async { batch().await.map(|rows| (rows, (rows > 0).then_some(()))) }).await
}

/// Walks through all rows, each step from the end of the one before. Returns the number of rows deleted.
async fn walk<P: Copy, S: Future<Output = Result<(usize, Option<P>), Error>>>(
    start: P,
    step: impl Fn(P) -> S,
) -> Result<usize, Error> {
    let (mut rows, mut after) = (0, start);
    loop {
        let (found, last) = in_time(step(after)).await?;
        rows += found;
        let Some(last) = last else { return Ok(rows) };
        after = last;
    }
}

/// Takes step after step of a walk whose place is in the database. Returns the number of rows deleted.
async fn steps<S: Future<Output = Result<prune::Step, Error>>>(step: impl Fn() -> S) -> Result<usize, Error> {
    walk((), |()| async { step().await.map(|(rows, more)| (rows, more.then_some(()))) }).await
}

/// Prunes for as long as the program runs. Several instances may do so at once: they skip each other's rows, and each
/// session is read by one of them.
pub async fn keep_pruning(pool: PgPool, limits: Limits) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if pool.is_closed() {
            return;
        }
        match prune(&pool, limits).await {
            Ok(pruned) if pruned == Pruned::default() => {}
            Ok(pruned) => tracing::info!(
                sessions = pruned.sessions,
                surplus_sessions = pruned.surplus_sessions,
                staff_sessions = pruned.staff_sessions,
                staff_sign_ins = pruned.staff_sign_ins,
                events = pruned.events,
                forgotten = pruned.forgotten,
                webhook_messages = pruned.webhook_messages,
                provider_events = pruned.provider_events,
                deleted_identities = pruned.deleted_identities,
                provider_tokens = pruned.provider_tokens,
                "pruned"
            ),
            Err(error) => tracing::warn!(%error, "pruning failed and will be retried"),
        }
    }
}
