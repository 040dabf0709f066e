//! Providers and clients that fail.

mod clients;
mod provider;
