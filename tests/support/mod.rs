//! Support for all tests: a real PostgreSQL, a real provider over HTTP, and the real service.

#[macro_use]
#[allow(unused_macros, reason = "not every binary asks in each of the ways")]
mod sql;

pub mod app;
pub mod cluster;
pub mod description;
pub mod folder;
pub mod keys;
pub mod missing;
pub mod pages;
pub mod people;
mod port;
pub mod problem;
pub mod process;
pub mod provider;
pub mod race;
pub mod raw;
pub mod receiver;
pub mod relay;
pub mod signer;
pub mod staff_app;
pub mod tls;
pub mod token;
