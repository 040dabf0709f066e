//! Queues in PostgreSQL: the loop that works on a queue, the periodic readings of its state, and
//! its metrics.
//!
//! The statements stay with their tables. A message waits for earlier ones of its user and is
//! deleted once it is delivered; a token stays for years between its exchange and its revocation,
//! which its identity's lock decides on.

mod metrics;
mod readings;
mod tasks;
mod worker;

pub use self::metrics::{Attempts, Gauges};
pub use self::readings::{Readings, Summary};
pub use self::tasks::{Stop, Tasks};
pub use self::worker::{Worker, keep_working};
