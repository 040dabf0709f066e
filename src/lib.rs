//! Sign in with an identity provider's token.
//!
//! A mobile app gets an `id_token` from its provider's SDK and posts it to `/api/v1/auth/oauth/<provider>`. The
//! service has the provider verify the token, creates or links the user, and answers with an access token and a
//! refresh token of its own.
//!
//! # Structure
//!
//! `main` starts the [`app`]; the app mounts [`web`]; a guard in `web` turns each untrusted request into a
//! [`domain`] value; a [`service`] decides; [`store`] reads and writes the database; [`provider`] calls the identity
//! providers.
//!
//! One sign-in runs through five files, in this order:
//!
//! 1. `web/api/sign_in.rs`, the route
//! 2. `web/guard/verified_identity.rs`, the guard behind the route's first argument
//! 3. `provider/tokeninfo.rs`, the call to the provider (`domain/claims.rs` validates the answer)
//! 4. `service/sign_in.rs`, the decision and the credential
//! 5. `store/users.rs` with `store/sign_in_known.sql` and `store/sign_in_new.sql`, which handle concurrent sign-ins
//!    as one batch (`store/batch.rs`), and `store/sign_in.sql`, which finds, creates or links the users that they
//!    leave
//!
//! Each feature beside that way has a folder of its own, which can be read, or skipped, whole, with its
//! decisions and its SQL: [`admin`], the pages of support staff; [`keys`], the keys that sign access tokens; [`import`],
//! which brings in users from elsewhere; [`webhooks`], which informs other systems of changes; [`provider_events`], which
//! applies what providers report; [`provider_tokens`], which revokes what providers have issued to users who are gone.
//! The first three do not know each other. Webhooks and provider tokens wait in tables and are worked on by [`queue`].
//!
//! Imports point down: `cli` → `app` → `admin` → `web` → `service` → `keys` → `store` → `domain`, and `web` → `provider` →
//! `domain`. SQL is in `store` and in the files named `store` of a feature. `tests/architecture.rs` enforces this.

#[macro_use]
pub mod out;

pub mod admin;
pub mod app;
pub mod causes;
pub mod cli;
pub mod clock;
pub mod config;
#[cfg(debug_assertions)]
pub mod dev;
pub mod domain;
pub mod import;
pub mod keys;
pub mod provider;
pub mod provider_events;
pub mod provider_tokens;
pub mod queue;
pub mod secret;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod web;
pub mod webhooks;
