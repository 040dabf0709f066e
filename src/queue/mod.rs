//! Queues in PostgreSQL: the loop that works on a queue, the periodic readings of its state, and its metrics.
//!
//! The statements stay with their tables. A message waits for earlier ones of its user and is deleted once it is
//! delivered; a token stays for years between its exchange and its revocation, which its identity's lock decides on.

mod metrics;
mod readings;
mod worker;

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::metrics::{Attempts, Gauges};
pub use self::readings::{Readings, Summary};
pub use self::worker::{Worker, keep_working};

/// True once the shutdown has begun.
pub type Stop = watch::Receiver<bool>;

#[derive(Debug, Default)]
pub struct Tasks {
    stop: watch::Sender<bool>,
    running: Mutex<JoinSet<()>>,
}

impl Tasks {
    pub fn spawn<T: Future<Output = ()> + Send + 'static>(&self, task: impl FnOnce(Stop) -> T) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.spawn(task(self.stop.subscribe()));
    }

    /// Begins nothing new, and waits for the answers to what was begun, for a limited time.
    pub async fn close(&self) {
        self.stop.send_replace(true);
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        while running.join_next().await.is_some() {}
    }
}
