//! Sign in with an identity provider's token.
//!
//! A mobile app gets an `id_token` from its provider's SDK and posts it to
//! `/api/v1/auth/oauth/<provider>`. The service has the provider verify the token, creates or links
//! the user, and returns an access token and a refresh token of its own.
//!
//! # Structure
//!
//! `main` starts the [`app`]; the app mounts [`web`]; a guard in `web` turns each untrusted request
//! into a [`domain`] value; [`accounts`] decides and remembers; [`provider`] calls the identity
//! providers; [`database`] runs the statements. `docs/architecture.md` names the files of a sign-in
//! and of the other ways through the program, and the folders of its features.
//!
//! Imports point down: `cli` → `app` → `admin` → `web` → `accounts` → `keys` → `events` →
//! `database` → `domain`, and `web` → `provider` → `domain`. SQL is in `database`, `events`,
//! `accounts`, and in the files named `store` of a feature. `tests/architecture.rs` enforces this.

#[macro_use]
pub mod out;

pub mod accounts;
pub mod admin;
pub mod app;
pub mod background;
pub mod causes;
pub mod check_result;
pub mod cli;
pub mod clock;
pub mod config;
pub mod database;
#[cfg(debug_assertions)]
pub mod dev;
pub mod domain;
pub mod events;
pub mod import;
pub mod keys;
pub mod provider;
pub mod provider_events;
pub mod provider_tokens;
pub mod prune;
pub mod queue;
pub mod secret;
pub mod telemetry;
pub mod web;
pub mod webhooks;
