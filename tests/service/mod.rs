//! Tests of the service over real HTTP, with a real PostgreSQL and a provider of its own.

mod admin;
mod api;
mod contract;
mod fault;
mod provider_tokens;
mod store;
mod web;
mod webhooks;
mod well_known;
