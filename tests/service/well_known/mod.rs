//! Tests of the routes under `/.well-known`, and of the access tokens that they let services
//! verify.

mod authorization_server;
mod caching;
mod forgeries;
mod jwks;
