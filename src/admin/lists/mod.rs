//! The lists of users and of events, and what is known of one user, with their SQL.

pub mod events;
pub mod person;
pub mod users;
