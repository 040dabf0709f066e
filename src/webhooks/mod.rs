//! Webhooks: messages that inform other systems of each change of a user, signed as Standard
//! Webhooks describes (<https://www.standardwebhooks.com>).
//!
//! A trigger on `events` queues a message in the transaction that makes the change
//! (`migrations/20261122044011_create_webhooks.sql`). Each instance has one task for each receiver,
//! which takes due messages from the queue and sends them. A message that was sent and not yet
//! deleted when an instance ends is sent again. `docs/webhooks.md` describes what receivers can
//! rely on.

pub(crate) mod command;
mod delivery;
pub mod description;
mod failure;
pub mod message;
mod resolver;
mod sender;
pub mod store;

use std::mem;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::registry::Registry;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use uuid::Uuid;

use self::delivery::Delivery;
use self::failure::Failure;
pub use self::sender::ClientError;
use self::sender::{Accepted, Failed, Sender};
use crate::config::Webhook;
use crate::database::{Database, Error};
use crate::domain::Author;
use crate::queue::{Attempts, Gauges, Readings, Summary, Tasks, keep_working};

/// The number of messages that a statement makes due again.
const REPLAYED: i64 = 5000;

/// The receivers, and the tasks that send to them.
#[derive(Debug, Clone)]
pub struct Webhooks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    senders: RwLock<Senders>,
    attempts: Attempts,
    readings: Arc<Readings>,
    /// It is held while the tasks are replaced.
    tasks: Mutex<Tasks>,
}

type Senders = Arc<[Arc<Sender>]>;

impl Webhooks {
    pub fn new(webhooks: Vec<Webhook>) -> Result<Self, ClientError> {
        let senders = webhooks
            .into_iter()
            .map(|webhook| Sender::new(webhook).map(Arc::new));
        let senders = RwLock::new(senders.collect::<Result<_, _>>()?);
        let attempts = Attempts::new("webhook");
        let readings = Arc::default();
        let tasks = Mutex::default();
        Ok(Self(Arc::new(Shared {
            senders,
            attempts,
            readings,
            tasks,
        })))
    }

    /// Stores the receivers' subscriptions, and begins to send.
    pub async fn open(&self, database: &Database) -> Result<(), Error> {
        self.change(self, database).await
    }

    /// Replaces the receivers by others, to which it sends from now on.
    pub async fn change(&self, others: &Self, database: &Database) -> Result<(), Error> {
        let senders = others.senders();
        let Shared {
            attempts, readings, ..
        } = &*self.0;
        let mut running = self.0.tasks.lock().await;
        let wanted: Vec<_> = senders.iter().map(|sender| &sender.webhook).collect();
        for webhook in database
            .run(|_| store::subscribe(database, &wanted))
            .await?
        {
            tracing::warn!(
                webhook,
                "this webhook is not in the settings of this instance; nothing further is queued for it"
            );
        }
        mem::take(&mut *running).close().await;
        let tasks = &*running;
        for sender in &*senders {
            attempts.begin(&sender.webhook.name, &Failure::OUTCOMES);
            let database = database.clone();
            let sender = sender.clone();
            let attempts = attempts.clone();
            let readings = readings.clone();
            let waking = Some(0);
            let catching_up = None;
            let delivery = Delivery {
                database,
                sender,
                attempts,
                readings,
                waking,
                catching_up,
            };
            tasks.spawn("webhook deliveries", move |stop| {
                keep_working(delivery.clone(), stop)
            });
        }
        if !senders.is_empty() {
            let database = database.clone();
            let readings = readings.clone();
            tasks.spawn("webhook readings", move |stop| {
                let database = database.clone();
                let readings = readings.clone();
                let read = |database, known: Vec<_>| async move {
                    store::summaries(&database, &known).await
                };
                let problem = "reading the queues of webhooks failed and will be retried";
                async move { readings.keep_reading(&database, stop, read, problem).await }
            });
        }
        *self
            .0
            .senders
            .write()
            .unwrap_or_else(PoisonError::into_inner) = senders;
        Ok(())
    }

    fn senders(&self) -> Senders {
        self.0
            .senders
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn configured(&self) -> Vec<Webhook> {
        self.senders()
            .iter()
            .map(|sender| sender.webhook.clone())
            .collect()
    }

    pub fn of_name(&self, name: &str) -> Option<Webhook> {
        self.sender(name).map(|sender| sender.webhook.clone())
    }

    fn sender(&self, name: &str) -> Option<Arc<Sender>> {
        self.senders()
            .iter()
            .find(|sender| sender.webhook.name == name)
            .cloned()
    }

    /// Sends a test message to a receiver. Returns `None` if this instance's settings have no
    /// receiver of that name.
    pub async fn test(&self, name: &str) -> Option<Result<Accepted, Failed>> {
        Some(self.sender(name)?.test().await)
    }

    pub fn queues(&self) -> Vec<Summary> {
        self.0.readings.queues()
    }

    pub fn register(&self, registry: &mut Registry) {
        let help = "Attempts to send a webhook message by outcome";
        registry.register("webhook_deliveries", help, self.0.attempts.family.clone());
        registry.register_collector(Box::new(Gauges {
            readings: self.0.readings.clone(),
            label: "webhook",
            prefix: "webhook",
            help: [
                "Webhook messages that wait to be accepted, up to 100,000",
                "Webhook messages that are parked, up to 100,000",
                "Time since which the oldest waiting webhook message waits",
            ],
        }));
    }

    /// Sends nothing new, and waits for the answers to what was sent, for a limited time.
    pub async fn close(&self) {
        self.0.tasks.lock().await.close().await;
    }
}

/// The messages that are sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = WebhookReplay)]
pub struct Replayed {
    /// The messages that are due now: they were parked or waited for a retry.
    pub due: u64,
    /// The messages that were not accepted yet, up to 200,000. Messages that are not due wait
    /// behind another message of their user, are being sent, or are due within a minute.
    pub of: u64,
}

/// Makes unaccepted messages of a webhook due now, `only` one or all, and records who wanted it.
/// Returns `None` if the author is no longer an admin. After an error, earlier batches stay due.
pub async fn replay(
    database: &Database,
    webhook: &str,
    only: Option<Uuid>,
    by: Author<'_>,
) -> Result<Option<Replayed>, Error> {
    // It is not retried: it would be recorded twice.
    if !store::record_replay(database, webhook, only, by).await? {
        return Ok(None);
    }
    let queues = database.run(|_| store::summaries(database, &[])).await?;
    let queue = queues
        .into_iter()
        .find(|queue| queue.name == webhook)
        .unwrap_or_default();
    let of = u64::try_from(queue.waiting + queue.parked).unwrap_or_default();
    let mut due = 0;
    let mut after = 0;
    loop {
        let batch = database
            .run(|_| store::replay(database, webhook, only, true, after, REPLAYED))
            .await?;
        let (Some(last), number) = (batch.1, batch.0) else {
            return Ok(Some(Replayed { due, of }));
        };
        (due, after) = (due + u64::try_from(number).unwrap_or(u64::MAX), last);
    }
}
