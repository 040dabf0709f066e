//! Delivery of messages to one receiver. A receiver that is slow or down does not delay the
//! messages to others.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::failure::{DELIVERED, Failure};
use super::message;
use super::sender::{Failed, Sender};
use super::store::{self, Claimed, Ended};
use crate::clock;
use crate::database::{Database, Error};
use crate::queue::{Attempts, Readings, Worker};

/// The number of waiting messages that a statement looks at after the start, or makes due after an
/// outage.
const STEP: i64 = 5000;
/// Seconds after which another instance may send a message without a recorded result. It is longer
/// than an attempt.
const LEASE: u32 = 60;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// Seconds from each failed attempt to the next, as Standard Webhooks recommends. The statement that
/// records a failure varies each by a tenth. After the last retry, a message is parked.
const DELAYS: [u64; 9] = [
    5,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];
/// The longest time that a receiver can ask us to wait.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub database: Database,
    pub sender: Arc<Sender>,
    pub attempts: Attempts,
    pub readings: Arc<Readings>,
    /// After the start, the message after which the next step looks at waiting messages.
    pub waking: Option<i64>,
    /// After an outage of the receiver, the message after which the next step makes messages due
    /// that wait for a retry.
    pub catching_up: Option<i64>,
}

impl Delivery {
    fn webhook(&self) -> &str {
        &self.sender.webhook.name
    }

    /// Takes a step through the messages of the webhook, from the one after `after` on. Returns the
    /// message after which to go on, if there is one. Logs an error as `problem`, and then stays
    /// where it is.
    async fn step(
        &self,
        after: i64,
        step: impl Future<Output = Result<Option<i64>, Error>>,
        problem: &str,
    ) -> Option<i64> {
        step.await.unwrap_or_else(|error| {
            tracing::warn!(webhook = self.webhook(), %error, "{problem}");
            Some(after)
        })
    }

    async fn settle_alone(self, ended: Ended) {
        if let Err(error) = self.record(slice::from_ref(&ended)).await {
            let webhook = self.webhook();
            let id = ended.message.message_id;
            let problem =
                "the result of a webhook message was not recorded, so it will be sent again";
            tracing::warn!(webhook, %id, %error, "{problem}");
        }
    }

    async fn record(&self, ended: &[Ended]) -> Result<(), Error> {
        self.database
            .run(|_| store::settle(&self.database, ended))
            .await
    }
}

impl Worker for Delivery {
    type Row = Claimed;
    type Ended = Ended;

    const IN_FLIGHT: usize = 16;
    const PAUSE: Duration = Duration::from_secs(1);
    const GRACE: Duration = Duration::from_secs(3);

    fn database(&self) -> &Database {
        &self.database
    }

    async fn claim(&mut self, room: usize) -> Vec<Claimed> {
        if let Some(after) = self.waking {
            let wake = async {
                self.database
                    .run(|_| store::wake(&self.database, self.webhook(), after, STEP))
                    .await
            };
            let problem = "waking the messages of a webhook failed and will be retried";
            self.waking = self.step(after, wake, problem).await;
        }
        if let Some(after) = self.catching_up {
            let replay = async {
                Ok(self
                    .database
                    .run(|_| {
                        store::replay(&self.database, self.webhook(), None, false, after, STEP)
                    })
                    .await?
                    .1)
            };
            let problem = "the messages that wait for a retry could not be made due, which will be tried again";
            self.catching_up = self.step(after, replay, problem).await;
        }
        let webhook = self.webhook();
        let since = self.readings.since(webhook);
        self.database.run(|_| store::claim(&self.database, webhook, since, room, LEASE)).await.unwrap_or_else(|error| {
            tracing::warn!(webhook, %error, "reading the messages of a webhook failed and will be retried");
            Vec::new()
        })
    }

    async fn attempt(self, message: Claimed) -> Ended {
        let webhook = self.webhook();
        let id = message.message_id.to_string();
        let attempts = message.attempts;
        let sent = match message::body(&message) {
            Ok(body) => self.sender.send(&id, &body, clock::now()).await,
            Err(failure) => Err(failure.into()),
        };
        let Err(Failed {
            failure,
            retry_after,
            ..
        }) = sent
        else {
            self.attempts.count(webhook, DELIVERED);
            return Ended {
                message,
                failure: None,
                pause: None,
            };
        };
        self.attempts.count(webhook, failure.class());
        let kind = &message.kind;
        let pause = match failure {
            Failure::Gone => None,
            _ => pause(message.failures.unsigned_abs(), retry_after),
        };
        let failure = failure.to_string();
        if pause.is_some() {
            tracing::info!(
                webhook,
                id,
                kind,
                attempts,
                failure,
                "a webhook message was not accepted"
            );
        } else {
            tracing::warn!(
                webhook,
                id,
                kind,
                attempts,
                failure,
                "a webhook message is parked"
            );
        }
        Ended {
            message,
            failure: Some(failure),
            pause: pause.map(|pause| pause.as_secs_f64()),
        }
    }

    fn has_failed(ended: &Ended) -> bool {
        ended.failure.is_some()
    }

    fn recover(&mut self) {
        self.catching_up = Some(0);
    }

    /// Records the ends of attempts together or, if that fails, each separately: then a message
    /// whose user is locked for long costs the others only time.
    async fn settle(&self, ended: Vec<Ended>) {
        if self.record(&ended).await.is_err() {
            let alone = ended.into_iter().map(|one| self.clone().settle_alone(one));
            alone.collect::<JoinSet<_>>().join_all().await;
        }
    }

    fn abandon(&self) {
        let webhook = self.webhook();
        tracing::info!(
            webhook,
            "some webhook messages were not answered in time and will be sent again"
        );
    }
}

/// Returns the pause after a failure that follows `failures` others, or `None` if there is no
/// further attempt. A receiver can ask for a longer pause, but not for a shorter one.
fn pause(failures: u16, retry_after: Option<Duration>) -> Option<Duration> {
    let delay = DELAYS.get(usize::from(failures))?;
    Some(Duration::from_secs(*delay).max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_retried_for_three_days_and_then_parked() {
        let pauses: Vec<_> = (0..).map_while(|failures| pause(failures, None)).collect();
        assert_eq!(pauses.len(), 9, "ten attempts");
        assert!(pauses.is_sorted());
        assert_eq!(
            pauses.iter().sum::<Duration>().as_secs(),
            5 + 35 * 60 + 75 * 3600
        );
    }

    #[test]
    fn a_receiver_can_ask_for_patience_within_reason() {
        let seconds = |failures, retry_after| {
            pause(failures, Some(Duration::from_secs(retry_after))).map(|pause| pause.as_secs())
        };
        assert_eq!(seconds(0, 120), Some(120));
        assert_eq!(seconds(0, 0), Some(5));
        assert_eq!(seconds(0, u64::MAX), Some(3600));
        assert_eq!(seconds(4, 3600), Some(5 * 3600));
        assert_eq!(seconds(9, 3600), None);
    }
}
