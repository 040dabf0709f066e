//! The tasks that work on queues until they are closed: at the shutdown, or when the receivers
//! change.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::background;

/// True once the tasks are to end.
pub type Stop = watch::Receiver<bool>;

#[derive(Debug, Default)]
pub struct Tasks {
    stop: watch::Sender<bool>,
    running: Mutex<JoinSet<()>>,
}

impl Tasks {
    /// Starts a background task. `task` makes it, and its replacement after a panic.
    pub fn spawn<T: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        task: impl Fn(Stop) -> T + Send + 'static,
    ) {
        let stop = self.stop.subscribe();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.spawn(background::supervise(name, move || task(stop.clone())));
    }

    /// Has the tasks begin nothing new, and waits for the responses to their attempts, for a
    /// limited time.
    pub async fn close(&self) {
        self.stop.send_replace(true);
        let mut running =
            std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        while running.join_next().await.is_some() {}
    }
}
