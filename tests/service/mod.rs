//! The service as its users meet it: real HTTP, a real PostgreSQL, a real provider.

mod admin;
mod api;
mod contract;
mod fault;
mod provider_tokens;
mod store;
mod web;
mod webhooks;
mod well_known;
