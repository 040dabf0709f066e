//! The service as its users meet it: real HTTP, a real PostgreSQL, a real provider.

#[cfg(not(all(feature = "dev", debug_assertions)))]
compile_error!("the tests use the development parts; run them without --release and --no-default-features");

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod api;
mod contract;
mod fault;
mod provider_tokens;
mod store;
mod web;
mod webhooks;
mod well_known;
