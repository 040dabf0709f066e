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
//! providers. `docs/architecture.md` names the files of a sign-in and of the other ways through the program, and the folders of
//! its features.
//!
//! Imports point down: `cli` → `app` → `admin` → `web` → `service` → `keys` → `store` → `domain`, and `web` → `provider` →
//! `domain`. SQL is in `store` and in the files named `store` of a feature. `tests/architecture.rs` enforces this.

#[macro_use]
pub mod out;

pub mod admin;
pub mod app;
pub mod background;
pub mod causes;
pub mod cli;
pub mod clock;
pub mod config;
#[cfg(debug_assertions)]
pub mod dev;
pub mod domain;
pub mod finding;
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
