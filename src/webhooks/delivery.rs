//! Delivery of messages to one receiver. A receiver that is slow or down delays nobody else's messages.

use std::iter;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::failure::Failure;
use super::readings::Readings;
use super::schedule;
use super::sender::{Failed, Message, Sender};
use super::store::{self, Claimed, Ended, PgPool};
use crate::clock;
use crate::store::Error;
use crate::store::deadline::in_time;
use crate::store::error::retrying;

/// The messages that are sent at a time.
const IN_FLIGHT: usize = 16;
/// Failures in a row after which a receiver gets one message at a time.
const TROUBLE: u32 = 16;
/// The waiting messages that one statement looks at after the start.
const STEP: i64 = 5000;
/// The time for which an attempt that has ended waits for others, so that they share the statements. A receiver that is slow
/// loses little by it.
const MOMENT: Duration = Duration::from_millis(10);
/// The pause before the queue is read again, if it had nothing or the receiver is in trouble.
const PAUSE: Duration = Duration::from_secs(1);
/// Seconds after which another instance may send a message whose result nobody has recorded. It is longer than an attempt.
const LEASE: u32 = 60;
/// The time at the shutdown for answers to messages that were sent.
const GRACE: Duration = Duration::from_secs(3);

/// The delivery to one receiver.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pool: PgPool,
    sender: Arc<Sender>,
    readings: Arc<Readings>,
}

impl Delivery {
    pub fn new(pool: &PgPool, sender: &Arc<Sender>, readings: &Arc<Readings>) -> Self {
        Self { pool: pool.clone(), sender: sender.clone(), readings: readings.clone() }
    }

    fn webhook(&self) -> &str {
        &self.sender.webhook().name
    }

    /// Sends messages until `stop` says otherwise or the pool is closed.
    pub async fn keep_sending(self, mut stop: watch::Receiver<bool>) {
        let (mut in_flight, mut ended) = (JoinSet::new(), Vec::new());
        let (mut failures, mut waking) = (0, Some(0));
        while !self.pool.is_closed() && !*stop.borrow() {
            if let Some(after) = waking {
                waking = self.wake(after).await;
            }
            let room = if failures < TROUBLE { IN_FLIGHT } else { 1 }.saturating_sub(in_flight.len());
            let claimed = self.claim(room).await;
            // A full claim may have left others.
            let more = claimed.len() == room && failures < TROUBLE;
            for message in claimed {
                in_flight.spawn(self.clone().attempt(message));
            }
            tokio::select! {
                // It fails only if the sender is gone, which is the end as well.
                _ = stop.changed() => {}
                Some(done) = in_flight.join_next(), if failures < TROUBLE => ended.push(done.ok()),
                () = sleep(PAUSE), if !more => {}
            }
            if !ended.is_empty() {
                let others = async {
                    while in_flight.len() > IN_FLIGHT / 2
                        && let Some(done) = in_flight.join_next().await
                    {
                        ended.push(done.ok());
                    }
                };
                // What is free by then is filled.
                let _ = timeout(MOMENT, others).await;
            }
            ended.extend(iter::from_fn(|| in_flight.try_join_next()).map(Result::ok));
            for one in &ended {
                // A panic is in the log already.
                let delivered = one.as_ref().is_some_and(|one: &Ended| one.failure.is_none());
                failures = if delivered { 0 } else { failures.saturating_add(1) };
            }
            self.settle(ended.drain(..).flatten().collect()).await;
        }
        let answers = async {
            while let Some(done) = in_flight.join_next().await {
                let others = iter::from_fn(|| in_flight.try_join_next());
                self.settle(iter::once(done).chain(others).flatten().collect()).await;
            }
        };
        if timeout(GRACE, answers).await.is_err() {
            let webhook = self.webhook();
            tracing::info!(
                webhook,
                "some webhook messages were not answered before the shutdown and will be sent again"
            );
        }
    }

    /// Wakes messages that wait for pruned ones, after that one. Returns the message after which to go on, if there is one.
    async fn wake(&self, after: i64) -> Option<i64> {
        let webhook = self.webhook();
        let woken = in_time(async { retrying!(store::wake(&self.pool, webhook, after, STEP)) }).await;
        woken.unwrap_or_else(|error| {
            tracing::warn!(webhook, %error, "waking the messages of a webhook failed and will be retried");
            Some(after)
        })
    }

    async fn claim(&self, room: usize) -> Vec<Claimed> {
        if room == 0 {
            return Vec::new();
        }
        let webhook = self.webhook();
        let since = self.readings.since(webhook);
        in_time(store::claim(&self.pool, webhook, since, room, LEASE)).await.unwrap_or_else(|error| {
            tracing::warn!(webhook, %error, "reading the messages of a webhook failed and will be retried");
            Vec::new()
        })
    }

    /// Sends a message.
    async fn attempt(self, message: Claimed) -> Ended {
        let webhook = self.webhook();
        let (id, attempts) = (message.message_id.to_string(), message.attempts);
        let sent = self.sender.send(Message { id: &id, payload: &message.payload }, clock::now()).await;
        let failed = sent.err();
        self.readings.count(webhook, failed.as_ref().map(|failed| &failed.failure));
        let Some(Failed { failure, retry_after, .. }) = failed else {
            return Ended { message, failure: None, pause: None };
        };
        let kind = &message.kind;
        let pause = match failure {
            Failure::Gone => None,
            _ => schedule::pause(message.failures.unsigned_abs(), retry_after),
        };
        let failure = failure.to_string();
        if pause.is_some() {
            tracing::info!(webhook, id, kind, attempts, failure, "a webhook message was not accepted");
        } else {
            tracing::warn!(webhook, id, kind, attempts, failure, "a webhook message is parked");
        }
        Ended { message, failure: Some(failure), pause: pause.map(|pause| pause.as_secs_f64()) }
    }

    /// Records the ends of attempts: together, or else each by itself, so that one whose user is locked for long costs the
    /// others nothing but time.
    async fn settle(&self, ended: Vec<Ended>) {
        if ended.is_empty() || self.record(&ended).await.is_ok() {
            return;
        }
        let alone = ended.into_iter().map(|one| self.clone().settle_alone(one));
        alone.collect::<JoinSet<_>>().join_all().await;
    }

    async fn settle_alone(self, ended: Ended) {
        if let Err(error) = self.record(slice::from_ref(&ended)).await {
            let (webhook, id) = (self.webhook(), ended.message.message_id);
            let problem = "the result of a webhook message was not recorded, so it will be sent again";
            tracing::warn!(webhook, %id, %error, "{problem}");
        }
    }

    async fn record(&self, ended: &[Ended]) -> Result<(), Error> {
        in_time(async { retrying!(store::settle(&self.pool, ended)) }).await
    }
}
