//! A gate that requests wait at, so that tests need no sleeps.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use super::ledger::wait;

/// Requests wait here until it is released or dropped.
#[derive(Debug)]
pub struct Gate {
    latch: Arc<Latch>,
}

impl Gate {
    /// Waits until at least that many requests are waiting, and fails the test when they never come.
    pub async fn arrived(&self, count: usize) {
        let enough = |waiting: &usize| *waiting >= count;
        wait(&self.latch.waiting, "the requests at the gate", enough).await;
    }

    /// Waits until nobody waits any more, and fails the test when somebody stays.
    pub async fn empty(&self) {
        let none = |waiting: &usize| *waiting == 0;
        wait(&self.latch.waiting, "the requests at the gate", none).await;
    }

    /// How many requests are waiting now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        *self.latch.waiting.borrow()
    }

    /// Lets that many requests go, first come first served, and keeps holding the others.
    pub fn admit(&self, count: usize) {
        self.latch.passes.add_permits(count);
    }

    /// Lets every request go, those to come too.
    pub fn release(self) {
        drop(self);
        // Dropping it does.
    }

    pub(super) fn latch(&self) -> Arc<Latch> {
        Arc::clone(&self.latch)
    }
}

impl Default for Gate {
    fn default() -> Self {
        let latch = Latch { waiting: watch::Sender::new(0), passes: Semaphore::new(0) };
        Self { latch: Arc::new(latch) }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.latch.passes.close();
    }
}

/// The side of a gate that the requests see.
#[derive(Debug)]
pub(super) struct Latch {
    waiting: watch::Sender<usize>,
    passes: Semaphore,
}

impl Latch {
    /// Waits to be let through.
    pub(super) async fn pass(&self) {
        let _waiting = Waiting::at(self);
        // A closed semaphore is an open gate.
        if let Ok(pass) = self.passes.acquire().await {
            pass.forget();
        }
    }
}

/// Counts a waiting request, also when its client leaves.
struct Waiting<'a>(&'a Latch);

impl<'a> Waiting<'a> {
    fn at(latch: &'a Latch) -> Self {
        latch.waiting.send_modify(|waiting| *waiting += 1);
        Self(latch)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}
