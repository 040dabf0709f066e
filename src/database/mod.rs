//! Connections to PostgreSQL, and how statements run on them: deadlines, retries, batches and
//! migrations.
//!
//! The statements themselves close races. A lost race is [`Error::Raced`]: nothing was written, and
//! a retry is safe.

pub mod batch;
pub mod deadline;
pub mod disk;
pub mod error;
pub mod health;
mod login;
pub mod migrations;
pub mod planned_each_time;
pub mod pool;
pub mod pooler;
pub mod row_queue;
pub mod servers;

pub use self::deadline::in_time;
pub use self::error::Error;
pub(crate) use self::error::{changing, retrying};
pub(crate) use self::planned_each_time::planned_each_time;
