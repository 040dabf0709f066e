//! The development identity provider: an OpenID provider (OpenID Connect Core 1.0, code flow)
//! inside the service's own process, where a developer can sign in as anyone.
//!
//! Its tokens carry a real signature by a key of its own, and its token information has the form of
//! Google's, so that a sign-in takes the same steps as in production. Its one client is this
//! service, and it is as strict as that client needs. It stores no accounts, asks for no password,
//! and is never part of a release build.

mod account;
mod authorize;
mod discovery;
pub mod event;
mod id_token;
mod key;
pub mod mint;
mod token;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rocket::form::Errors;
use rocket::{Build, Rocket, routes};

use self::authorize::Grant;
use self::key::Key;
use super::error::Error;
use crate::secret::Secret;

pub const PATH: &str = "/dev/idp";

/// The lifetime of its tokens, in seconds; the same as Google's.
const TOKEN_TTL: i64 = 3600;

/// The provider with its only client.
#[derive(Debug)]
pub struct IdentityProvider {
    key: Key,
    pub(super) issuer: String,
    client_id: String,
    pub(super) client_secret: Secret<String>,
    /// The unused codes.
    codes: Mutex<HashMap<String, Grant>>,
}

impl IdentityProvider {
    /// Opens a provider with the key in `directory`, and creates both if they do not exist.
    /// `issuer` is the URL at which `/dev/idp` of this server is reached, without a trailing slash.
    pub fn open(
        directory: &Path,
        issuer: String,
        client_id: String,
        client_secret: Secret<String>,
    ) -> Result<Self, Error> {
        Ok(Self {
            key: Key::load(directory)?,
            issuer,
            client_id,
            client_secret,
            codes: Mutex::default(),
        })
    }

    fn codes(&self) -> MutexGuard<'_, HashMap<String, Grant>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the provider and its routes to a server. The page needs the templates' fairing.
    pub fn mount(self, rocket: Rocket<Build>) -> Rocket<Build> {
        rocket.manage(self).mount(
            PATH,
            routes![
                discovery::configuration,
                discovery::jwks,
                discovery::transmitter,
                id_token::tokeninfo,
                mint::mint,
                authorize::show,
                authorize::choose,
                token::exchange,
            ],
        )
    }
}

fn describe(errors: &Errors<'_>) -> String {
    let mistakes = errors.iter().map(|error| match &error.name {
        Some(name) => format!("`{name}`: {error}"),
        None => error.to_string(),
    });
    mistakes.collect::<Vec<_>>().join(", ")
}
