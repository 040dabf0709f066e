//! Whether the service is about to stop. It answers as before, and `/readyz` says that nothing more
//! should be sent here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by whoever is told to stop and whoever is asked.
#[derive(Debug, Clone, Default)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// From now on the service is about to stop.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
