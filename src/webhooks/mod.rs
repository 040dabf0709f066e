//! Webhooks: messages that tell other systems of each change of a user, signed as Standard Webhooks describes
//! (<https://www.standardwebhooks.com>).
//!
//! A trigger on `events` queues a message in the transaction that makes the change (`migrations`). Each instance has one
//! task for each receiver, which takes due messages from the queue and sends them. A message that was sent and not yet
//! deleted when an instance ends is sent again. `docs/webhooks.md` describes what receivers can rely on.

pub(crate) mod command;
mod delivery;
pub mod description;
mod failure;
mod readings;
mod resolver;
mod schedule;
mod sender;
mod signature;
pub mod store;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use self::delivery::Delivery;
use self::readings::Readings;
pub use self::sender::ClientError;
use self::sender::Sender;
use self::store::PgPool;
use crate::config::Webhook;
use crate::domain::actor::By;
use crate::store::Error;
use crate::store::deadline::in_time;
use crate::store::error::retrying;

/// The messages that one statement lets be sent again.
const REPLAYED: i64 = 5000;

/// The receivers, and the tasks that send to them.
#[derive(Debug, Clone)]
pub struct Webhooks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    senders: Vec<Arc<Sender>>,
    readings: Arc<Readings>,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

impl Webhooks {
    /// Prepares the connections to these receivers.
    ///
    /// # Errors
    /// An HTTP client cannot be built.
    pub fn new(webhooks: Vec<Webhook>) -> Result<Self, ClientError> {
        let senders = webhooks.into_iter().map(|webhook| Sender::new(webhook).map(Arc::new));
        let senders: Vec<Arc<Sender>> = senders.collect::<Result<_, _>>()?;
        let readings = Arc::new(Readings::default());
        for sender in &senders {
            readings.begin(&sender.webhook().name);
        }
        let (stop, tasks) = (watch::Sender::new(false), Mutex::default());
        Ok(Self(Arc::new(Shared { senders, readings, stop, tasks })))
    }

    /// Writes which messages the receivers want, and begins to send.
    pub async fn open(&self, pool: &PgPool) -> Result<(), Error> {
        let wanted: Vec<_> = self.0.senders.iter().map(|sender| sender.webhook()).collect();
        for webhook in in_time(store::subscribe(pool, &wanted)).await? {
            tracing::warn!(
                webhook,
                "this webhook is not in the settings of this instance; nothing further is queued for it"
            );
        }
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in &self.0.senders {
            let delivery = Delivery::new(pool, sender, &self.0.readings);
            tasks.spawn(delivery.keep_sending(self.0.stop.subscribe()));
        }
        if !self.0.senders.is_empty() {
            let (pool, readings, stop) = (pool.clone(), self.0.readings.clone(), self.0.stop.subscribe());
            tasks.spawn(async move { readings.keep_reading(&pool, stop).await });
        }
        Ok(())
    }

    /// Returns the receivers' settings.
    pub fn configured(&self) -> impl Iterator<Item = &Webhook> {
        self.0.senders.iter().map(|sender| sender.webhook())
    }

    /// Returns the queues as this instance last read them.
    #[must_use]
    pub fn queues(&self) -> Vec<store::Summary> {
        self.0.readings.queues()
    }

    /// Sends nothing new, and waits for the answers to what was sent, for a limited time.
    pub async fn close(&self) {
        self.0.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

/// Lets messages of a webhook that were not accepted be sent now, that one or all, and records who wanted it. Returns their
/// number, or `None` if that is a member of staff who is no admin.
///
/// # Errors
/// See [`Error`]; earlier batches stay due.
pub async fn replay(
    pool: &PgPool,
    webhook: &str,
    only: Option<Uuid>,
    by: By<'_>,
) -> Result<Option<u64>, Error> {
    if !in_time(store::record_replay(pool, webhook, only, by)).await? {
        return Ok(None);
    }
    let (mut replayed, mut after) = (0, 0);
    loop {
        let batch = in_time(async { retrying!(store::replay(pool, webhook, only, after, REPLAYED)) }).await?;
        let (Some(last), number) = (batch.1, batch.0) else { return Ok(Some(replayed)) };
        (replayed, after) = (replayed + u64::try_from(number).unwrap_or(u64::MAX), last);
    }
}
