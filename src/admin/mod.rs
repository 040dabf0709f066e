//! Administration of users by support staff and the product's backend: the [`pages`] under
//! `/admin`, and the same verbs as an [`api`]. Both use [`changes`], and the [`lists`] of users and
//! events; [`staff`] has the people and the API keys that have access.

pub mod api;
pub mod changes;
pub(crate) mod command;
mod dates;
pub mod lists;
pub mod pages;
mod reason;
pub mod staff;

pub use self::staff::sign_in::flow::Admin;
