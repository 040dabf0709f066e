//! The service's PostgreSQL: its connections, and how statements run on them.
//!
//! The statements themselves close races. A lost race is [`Error::Raced`]: nothing was written, and
//! a retry is safe.

pub mod batch;
mod connections;
pub mod error;
mod executor;
pub mod health;
pub mod migrations;
pub mod pool;
pub mod pooler;
pub mod run;
pub mod servers;

pub use self::connections::Database;
pub use self::error::Error;
pub use self::executor::{Checkout, PlannedEachTime};
pub use self::health::LIMIT;
pub use self::run::Attempt;
