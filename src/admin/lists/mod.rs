//! The lists of users and of events, and the data of one user, with their SQL.

pub mod events;
pub mod person;
pub mod users;
