//! Sign in with an identity provider's token.
//!
//! A mobile app gets an `id_token` from its provider's SDK and posts it to
//! `/api/v1/auth/oauth/<provider>`. The service asks the provider about the token, creates or
//! links the user, and answers with a credential of its own.
//!
//! # The house
//!
//! `main` starts a [`service`]; the service mounts [`web`]; `web` trusts nothing until a guard has
//! produced a [`domain`] value; [`session`] decides; [`store`] remembers; [`provider`] asks outside.
//!
//! One sign-in runs through five files, in this order:
//!
//! 1. `web/api/sign_in.rs`, the route
//! 2. `web/guard/verified_identity.rs`, the guard that the route's first argument stands for
//! 3. `provider/tokeninfo.rs`, the call to the provider (the verdict on its answer is
//!    `domain/claims.rs`)
//! 4. `session/sign_in.rs`, the decision and the credential
//! 5. `store/users.rs` with `store/sign_in_known.sql` and `store/sign_in_new.sql`, which sign in whoever arrives together
//!    (`store/batch.rs`), and `store/sign_in.sql`, which finds, creates or links whoever they leave
//!
//! Imports point down: `web` → `session` → `store` → `domain`, and `web` → `provider` → `domain`.
//! `tests/architecture.rs` holds the code to it.

pub mod cli;
pub mod clock;
pub mod config;
#[cfg(all(feature = "dev", debug_assertions))]
pub mod dev;
pub mod domain;
pub mod provider;
pub mod secret;
pub mod service;
pub mod session;
pub mod store;
pub mod telemetry;
pub mod web;
