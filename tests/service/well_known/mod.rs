//! Mirrors the URLs under `/.well-known`, and what they are for: verifying access tokens.

mod authorization_server;
mod caching;
mod forgeries;
mod jwks;
