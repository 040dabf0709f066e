//! Providers and clients that fail.

mod clients;
mod database;
mod provider;
