//! Recording of refused sign-ins. A task writes them from a bounded queue, so that a flood of bad tokens neither fills
//! the memory nor delays callers with good ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::store::deadline::in_time;
use crate::store::events::{RefusedSignIn, record_refusals};

/// Maximum number of waiting refusals.
const CAPACITY: usize = 1024;
/// Maximum number of refusals in one statement.
const BATCH: usize = 64;

/// The sender to the queue.
#[derive(Debug)]
pub struct Refusals {
    queue: mpsc::Sender<RefusedSignIn>,
    unrecorded: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Refusals {
    /// Opens the queue and the task that empties it; the task ends when the queue is dropped and empty.
    #[must_use]
    pub fn open(pool: PgPool) -> Self {
        let (queue, waiting) = mpsc::channel(CAPACITY);
        let unrecorded = Arc::new(AtomicU64::new(0));
        let writer = tokio::spawn(write(pool, waiting, unrecorded.clone()));
        Self { queue, unrecorded, writer: Mutex::new(Some(writer)) }
    }

    /// Returns the counter of refusals that were not recorded, since the queue was full or the database failed.
    #[must_use]
    pub fn unrecorded(&self) -> Arc<AtomicU64> {
        self.unrecorded.clone()
    }

    /// Returns the task that empties the queue, to await the last refusals. It ends when this value is dropped.
    pub fn writer(&self) -> Option<JoinHandle<()>> {
        self.writer.lock().ok()?.take()
    }

    /// Queues a refusal, or counts it as unrecorded if the queue is full.
    pub fn record(&self, refusal: RefusedSignIn) {
        if self.queue.try_send(refusal).is_err() {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn write(pool: PgPool, mut waiting: mpsc::Receiver<RefusedSignIn>, unrecorded: Arc<AtomicU64>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut told = 0;
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        if let Err(error) = in_time(record_refusals(&pool, &batch)).await {
            let lost = u64::try_from(batch.len()).unwrap_or(u64::MAX);
            tracing::warn!(lost, error = %error, "recording refused sign-ins failed");
            unrecorded.fetch_add(lost, Ordering::Relaxed);
            told += lost;
        }
        batch.clear();
        let dropped = unrecorded.load(Ordering::Relaxed) - told;
        if dropped > 0 {
            tracing::warn!(dropped, "too many refused sign-ins to record");
            told += dropped;
        }
    }
}
