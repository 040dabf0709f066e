//! The service with providers that others wrote, and with the clients, verifiers and generators that people
//! use. It runs as it is deployed, in the `release` profile; each program is what its registry has, at a
//! version that a lock file names.
//!
//! `.ci/real` installs them. A test that lacks what it needs says so.

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
