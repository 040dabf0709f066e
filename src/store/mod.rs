//! The SQL statements of the API: free functions, one statement each. Those of a feature are in its own folder.
//!
//! The statements themselves close races. A lost race is [`Error::Raced`]: nothing was written, and a retry is safe.

pub mod author;
pub mod batch;
pub mod deadline;
pub mod disk;
pub mod doubt;
pub mod erasure;
pub mod error;
pub mod event_counts;
pub mod event_log;
pub mod events;
pub mod identities;
mod login;
pub mod merging;
pub mod migrations;
pub mod partitions;
pub mod pool;
pub mod pooler;
pub mod prune;
pub mod reauthentication;
pub mod row_queue;
#[cfg(debug_assertions)]
pub mod seed;
pub mod servers;
pub mod sessions;
pub mod settled;
pub mod unprepared;
pub mod users;

pub use self::author::Asking;
pub(crate) use self::author::Author;
pub use self::deadline::in_time;
pub use self::error::Error;
pub(crate) use self::error::{changing, retrying};
pub use self::events::Look;
pub use self::partitions::first_id;
pub(crate) use self::unprepared::unprepared;
