//! What support staff and the product's backend do with users: the [`pages`] under `/admin`, and the same verbs as an [`api`].
//! Both use [`changes`], and the [`lists`] of users and events; [`staff`] has the people and the keys that may.

pub mod api;
pub mod changes;
pub(crate) mod command;
mod dates;
pub mod lists;
pub mod pages;
mod reason;
pub mod staff;

pub use self::staff::sign_in::flow::Admin;
