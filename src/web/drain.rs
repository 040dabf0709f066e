//! Whether the service is about to stop. It answers as before, and `/readyz` says that nothing more
//! should be sent here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by whoever is told to stop and whoever is asked.
#[derive(Debug, Clone, Default)]
pub struct Drain {
    begun: Arc<AtomicBool>,
    seconds: u32,
}

impl Drain {
    /// One that takes so many seconds once it has begun.
    #[must_use]
    pub fn of(seconds: u32) -> Self {
        Self { seconds, ..Self::default() }
    }

    /// For how long requests are answered while nothing more should be sent here.
    #[must_use]
    pub const fn seconds(&self) -> u32 {
        self.seconds
    }

    /// From now on the service is about to stop.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}
