//! The state of the shutdown. During the drain requests are still answered, and `/readyz` reports that no more
//! should be sent to this instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Default)]
pub struct Drain {
    begun: Arc<AtomicBool>,
    /// The time for which requests are still answered.
    pub seconds: u32,
}

impl Drain {
    /// Creates a drain that lasts `seconds` once it has begun.
    pub fn of(seconds: u32) -> Self {
        Self { seconds, ..Self::default() }
    }

    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}
