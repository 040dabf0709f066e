//! Refused sign-ins on their way to the events: recorded off the caller's path, in a bounded
//! queue, so that a flood of bad tokens costs neither memory nor the callers with good ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sqlx::PgPool;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::store::events::{RefusedSignIn, record_refusals};

/// Refusals that may wait.
const CAPACITY: usize = 1024;
/// Refusals that are written in one statement.
const BATCH: usize = 64;

/// The queue's entrance.
#[derive(Debug)]
pub struct Refusals {
    queue: mpsc::Sender<RefusedSignIn>,
    dropped: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Refusals {
    /// Opens the queue and the task that empties it; the task ends when the queue is dropped and
    /// empty.
    #[must_use]
    pub fn open(pool: PgPool) -> Self {
        let (queue, waiting) = mpsc::channel(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = tokio::spawn(write(pool, waiting, dropped.clone()));
        Self { queue, dropped, writer: Mutex::new(Some(writer)) }
    }

    /// The task that empties the queue, for whoever waits for the last refusals to be written. It
    /// ends once this value is dropped.
    pub fn writer(&self) -> Option<JoinHandle<()>> {
        self.writer.lock().ok()?.take()
    }

    /// Takes a refusal, or counts it as dropped when the queue is full.
    pub fn record(&self, refusal: RefusedSignIn) {
        if self.queue.try_send(refusal).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn write(pool: PgPool, mut waiting: mpsc::Receiver<RefusedSignIn>, dropped: Arc<AtomicU64>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut told = 0;
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        if let Err(error) = record_refusals(&pool, &batch).await {
            tracing::warn!(lost = batch.len(), error = %error, "refused sign-ins could not be recorded");
        }
        batch.clear();
        let dropped = dropped.load(Ordering::Relaxed);
        if dropped > told {
            tracing::warn!(dropped = dropped - told, "refused sign-ins were too many to record");
            told = dropped;
        }
    }
}
