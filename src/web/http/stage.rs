//! The stage of the service between its start and its end. The port is open before the database is
//! ready, and during the drain requests are still answered, while `/readyz` reports that no more
//! should be sent to this instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clones share the progress.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    reached: Arc<Reached>,
    /// The time for which requests are still answered during the drain, in seconds.
    pub drain: u32,
}

#[derive(Debug, Default)]
struct Reached {
    database: AtomicBool,
    end_of_start: AtomicBool,
    drain: AtomicBool,
}

impl Stage {
    pub fn new(drain: u32) -> Self {
        Self {
            drain,
            ..Self::default()
        }
    }

    pub fn reach_database(&self) {
        self.reached.database.store(true, Ordering::Relaxed);
    }

    pub fn end_start(&self) {
        self.reach_database();
        self.reached.end_of_start.store(true, Ordering::Relaxed);
    }

    pub fn begin_drain(&self) {
        self.reached.drain.store(true, Ordering::Relaxed);
    }

    pub fn has_database(&self) -> bool {
        self.reached.database.load(Ordering::Relaxed)
    }

    pub fn has_started(&self) -> bool {
        self.reached.end_of_start.load(Ordering::Relaxed)
    }

    pub fn is_draining(&self) -> bool {
        self.reached.drain.load(Ordering::Relaxed)
    }
}
