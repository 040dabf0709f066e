//! The service with other projects' providers, and with the clients, verifiers and generators that
//! people use. It runs as deployed, in the `release` profile. Each program comes from its registry,
//! in the version of a lock file.
//!
//! `.ci/real` installs them. Without its programs, a test is skipped with a message.

mod clients;
mod generated;
pub mod installed;
mod keycloak;
mod kotlin_client;
mod oidc_provider;
mod person;
mod service;
mod typescript_client;
mod verifiers;
