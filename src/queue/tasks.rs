//! The tasks that work on queues until they are closed: at the shutdown, or when the receivers change.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;

/// True once the tasks are to end.
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
