//! A gate that requests wait at, so that tests need no sleeps.

use std::sync::Arc;

use tokio::sync::watch;

use super::ledger::{OnDrop, wait};

/// Requests wait here until it is released or dropped.
pub struct Gate {
    latch: Latch,
    _held: watch::Sender<()>,
}

impl Gate {
    pub(super) fn new() -> (Self, Latch) {
        let (held, open) = watch::channel(());
        let latch = Latch {
            waiting: Arc::default(),
            open,
        };
        (
            Self {
                latch: latch.clone(),
                _held: held,
            },
            latch,
        )
    }

    /// Waits until at least that many requests are waiting, and fails the test when they never
    /// come.
    pub async fn arrived(&self, count: usize) {
        wait(&self.latch.waiting, "the requests at the gate", |waiting| {
            *waiting >= count
        })
        .await;
    }

    /// Releases all requests, now and later.
    pub fn release(self) {
        drop(self);
    }
}

/// The side of a gate that the requests see.
#[derive(Clone, Debug)]
pub(super) struct Latch {
    waiting: Arc<watch::Sender<usize>>,
    open: watch::Receiver<()>,
}

impl Latch {
    /// Waits until the gate is gone.
    pub(super) async fn pass(mut self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _waiting = OnDrop(&self.waiting, |waiting| *waiting -= 1);
        let _ = self.open.changed().await;
    }
}
