//! What the tests stand on: a real PostgreSQL, a real provider over HTTP, the real service.

pub mod app;
pub mod cluster;
pub mod desk;
pub mod keys;
pub mod missing;
pub mod pages;
pub mod people;
pub mod problem;
pub mod process;
#[allow(dead_code, unused_imports, reason = "it is whole; its own tests, in tests/provider, use all of it")]
pub mod provider;
pub mod pyjwt;
pub mod raw;
pub mod receiver;
pub mod relay;
pub mod tls;
pub mod token;
