//! The tests to run before each commit: the README's `cargo test`. They need PostgreSQL and nothing
//! else.

#[cfg(not(debug_assertions))]
compile_error!("the tests use the development parts; run them without --release");

#[macro_use]
mod support;

mod architecture;
mod dev_identity_provider;
mod docs;
mod event_kinds;
mod provider;
mod service;
