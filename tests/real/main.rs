//! The service with providers that others wrote, and with the clients, verifiers and generators that people
//! use. It runs as it is deployed, in the `release` profile; each program is what its registry has, at a
//! version that a lock file names.
//!
//! `.ci/real` installs them. A test that lacks what it needs says so.

#[cfg(not(all(feature = "dev", debug_assertions)))]
compile_error!("the tests use the development parts; run them without --release and --no-default-features");

#[allow(dead_code, unused_imports, reason = "the other test binaries use the rest of it")]
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "tests/deploy uses the rest of it")]
#[path = "../deploy/tools.rs"]
mod tools;
#[allow(dead_code, reason = "tests/deploy uses the rest of it")]
#[path = "../deploy/vestibule.rs"]
mod vestibule;

mod clients;
mod generated;
mod installed;
mod keycloak;
mod kotlin_client;
mod oidc_provider;
mod person;
mod service;
mod typescript_client;
mod verifiers;
