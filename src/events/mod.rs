//! The record of events: kept by month, counted by the hour, and erased with the user.

pub mod author;
pub mod counts;
pub mod erasure;
pub mod kind;
pub mod log;
pub mod partitions;
pub mod record;
pub mod refusals;
pub mod settled;

pub(crate) use self::author::SqlAuthor;
pub use self::kind::EventKind;
pub use self::partitions::first_id;
pub use self::record::DataAccess;
pub use self::refusals::Refusals;
