//! Pruning: expired rows are deleted, and deleted users are erased from events, in small batches.
//! Each [`Step`] stands alone: a step that fails is logged and counted, and the others run.

pub mod store;

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use strum::VariantArray;
use time::OffsetDateTime;
use uuid::Uuid;

use self::store::Walk;
use crate::database::{Database, Error};
use crate::events::{erasure, partitions};
use crate::provider_tokens::store as provider_tokens;
use crate::webhooks::store as webhooks;

/// The number of rows that each statement deletes; of sessions, the number that it reads.
const BATCH: i64 = 1000;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(10);
/// Seconds from the end of a session to the walk that reads it: a week, and a day by which clocks
/// may differ.
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
    /// The walks over sessions, each with the sessions' age in seconds. The last walk comes first.
    const fn walks(self) -> [(Walk, u32); 3] {
        let unused = self.refresh_token_ttl + AFTERWARDS;
        [
            (Walk::Oldest, self.absolute_ttl + AFTERWARDS),
            (Walk::Used, 2 * unused),
            (Walk::Unused, unused),
        ]
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

/// The steps of pruning, in their order: the data of deleted users goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Step {
    Erasure,
    DeletedIdentities,
    ProviderTokens,
    WebhookMessages,
    Partitions,
    Events,
    Sessions,
    SurplusSessions,
    StaffSessions,
    StaffSignIns,
    ProviderEvents,
}

/// The failures of steps since the start.
pub type Failures = Family<[(&'static str, &'static str); 1], Counter>;

/// Returns a counter for each step, at zero.
pub fn failures() -> Failures {
    let failures = Failures::default();
    for step in Step::VARIANTS {
        drop(failures.get_or_create(&[("step", step.into())]));
    }
    failures
}

/// Some steps failed. The others have run.
#[derive(Debug, thiserror::Error)]
#[error("pruning is incomplete: {}", failed.iter().map(told).collect::<Vec<_>>().join("; "))]
pub struct Incomplete {
    /// The rows that the other steps deleted.
    pub pruned: Pruned,
    pub failed: Vec<(Step, Error)>,
}

fn told((step, error): &(Step, Error)) -> String {
    let step: &str = step.into();
    format!("the step {step} failed: {error}")
}

/// The steps of a round that failed.
#[derive(Default)]
struct Round(Vec<(Step, Error)>);

impl Round {
    /// Runs a step, and returns the number of its rows. Rows deleted before an error stay deleted.
    async fn run(&mut self, step: Step, work: impl Future<Output = Result<usize, Error>>) -> usize {
        work.await.unwrap_or_else(|error| {
            self.0.push((step, error));
            0
        })
    }
}

/// Erases all deleted users and deletes all expired rows, batch by batch.
///
/// # Errors
/// Some steps failed.
pub async fn prune(database: &Database, limits: Limits) -> Result<Pruned, Incomplete> {
    let Limits {
        event_days,
        sessions_per_identity,
        ..
    } = limits;
    let begin = OffsetDateTime::UNIX_EPOCH;
    let mut round = Round::default();
    let mut pruned = Pruned::default();
    for &step in Step::VARIANTS {
        match step {
            Step::Erasure => pruned.forgotten = round.run(step, erasure::finish(database)).await,
            Step::DeletedIdentities => {
                let work = walk(database, begin, |from| {
                    store::deleted_identities(database, from, BATCH)
                });
                pruned.deleted_identities = round.run(step, work).await;
            }
            Step::ProviderTokens => {
                let work = all(database, || provider_tokens::prune(database, BATCH));
                pruned.provider_tokens = round.run(step, work).await;
            }
            Step::WebhookMessages => {
                let work = all(database, || webhooks::prune(database, BATCH));
                pruned.webhook_messages = round.run(step, work).await;
            }
            Step::Partitions => {
                round
                    .run(step, Box::pin(keep_partitions(database, event_days)))
                    .await;
            }
            Step::Events => {
                let work = walk(database, Uuid::nil(), |after| {
                    store::events(database, after, event_days, BATCH)
                });
                pruned.events = round.run(step, work).await;
            }
            Step::Sessions => {
                pruned.sessions = round.run(step, expired_sessions(database, limits)).await;
            }
            Step::SurplusSessions => {
                let work = steps(database, || {
                    store::surplus_sessions(database, sessions_per_identity, BATCH)
                });
                pruned.surplus_sessions = round.run(step, work).await;
            }
            Step::StaffSessions => {
                let work = all(database, || store::staff_sessions(database, BATCH));
                pruned.staff_sessions = round.run(step, work).await;
            }
            Step::StaffSignIns => {
                let work = walk(database, begin, |from| {
                    store::staff_sign_ins(database, from, BATCH)
                });
                pruned.staff_sign_ins = round.run(step, work).await;
            }
            Step::ProviderEvents => {
                let work = walk(database, begin, |from| {
                    store::provider_events(database, from, BATCH)
                });
                pruned.provider_events = round.run(step, work).await;
            }
        }
    }
    let Round(failed) = round;
    if failed.is_empty() {
        Ok(pruned)
    } else {
        Err(Incomplete { pruned, failed })
    }
}

async fn keep_partitions(database: &Database, event_days: u32) -> Result<usize, Error> {
    let keep = async || {
        let mut connection = database.acquire().await?;
        partitions::keep(&mut connection, Some(event_days)).await?;
        connection.release();
        Ok(0)
    };
    database.run(|_| keep()).await
}

/// Deletes expired sessions. A walk that fails does not stop the others.
pub async fn expired_sessions(database: &Database, limits: Limits) -> Result<usize, Error> {
    let mut deleted = 0;
    let mut failure = None;
    for (walk, age) in limits.walks() {
        match steps(database, || store::sessions(database, walk, age, BATCH)).await {
            Ok(rows) => deleted += rows,
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(deleted), Err)
}

/// Deletes batch after batch until one is empty. Returns the number of rows.
async fn all<B: Future<Output = Result<usize, Error>>>(
    database: &Database,
    batch: impl Fn() -> B,
) -> Result<usize, Error> {
    walk(database, (), |()| async {
        batch().await.map(|rows| (rows, (rows > 0).then_some(())))
    })
    .await
}

/// Walks through all rows, each step from the end of the one before. Returns the number of rows
/// deleted.
async fn walk<P: Copy, S: Future<Output = Result<(usize, Option<P>), Error>>>(
    database: &Database,
    start: P,
    step: impl Fn(P) -> S,
) -> Result<usize, Error> {
    let mut rows = 0;
    let mut after = start;
    loop {
        let (found, last) = database.run(|_| step(after)).await?;
        rows += found;
        let Some(last) = last else { return Ok(rows) };
        after = last;
    }
}

/// Takes step after step of a walk whose place is in the database. Returns the number of rows
/// deleted.
async fn steps<S: Future<Output = Result<store::Step, Error>>>(
    database: &Database,
    step: impl Fn() -> S,
) -> Result<usize, Error> {
    walk(database, (), |()| async {
        step().await.map(|(rows, more)| (rows, more.then_some(())))
    })
    .await
}

/// Prunes for as long as the program runs. Several instances may do so at once: they skip rows that
/// another has locked, and share one place in the sessions, so that no session is read twice.
pub async fn keep_pruning(database: Database, limits: Limits, failures: Failures) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if database.is_closed() {
            return;
        }
        let (pruned, failed) = match prune(&database, limits).await {
            Ok(pruned) => (pruned, Vec::new()),
            Err(Incomplete { pruned, failed }) => (pruned, failed),
        };
        for (step, error) in failed {
            let step: &'static str = step.into();
            failures.get_or_create(&[("step", step)]).inc();
            tracing::warn!(step, %error, "a step of pruning failed and will be retried");
        }
        if pruned != Pruned::default() {
            tracing::info!(
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
            );
        }
    }
}
