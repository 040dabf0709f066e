//! The development identity provider: an OpenID provider (OpenID Connect Core 1.0, code flow) that
//! lives in the service's own process and lets a developer be anyone.
//!
//! Its tokens carry a real signature by a key of its own, and its token information looks like
//! Google's, so that a sign-in takes every step that it takes in production. It has one client and
//! no users, asks for no password, and is never part of a release build.

mod answer;
mod authorization_request;
mod authorize;
mod client_authentication;
mod codes;
mod discovery;
mod id_token;
mod key;
mod mint;
mod parameters;
mod person;
pub mod remote;
mod token;
mod tokeninfo;

use std::path::Path;

use rocket::{Build, Rocket, routes};

use self::codes::Codes;
pub use self::key::Error;
use self::key::Key;
use crate::secret::Secret;

/// Where its routes are mounted, and the path of its issuer.
pub const PATH: &str = "/dev/idp";

/// Lifetime of its tokens, in seconds; Google's.
const TOKEN_TTL: u16 = 3600;

/// The provider, with the one client that it knows.
#[derive(Debug)]
pub struct IdentityProvider {
    key: Key,
    issuer: String,
    client_id: String,
    client_secret: Secret<String>,
    codes: Codes,
}

impl IdentityProvider {
    /// A provider whose key lies in that directory; both are made if there are none yet. The issuer
    /// is the address that `/dev/idp` of this server is reached at, without a trailing slash.
    ///
    /// # Errors
    /// See [`enum@Error`].
    pub fn open(
        directory: &Path,
        issuer: String,
        client_id: String,
        client_secret: Secret<String>,
    ) -> Result<Self, Error> {
        Ok(Self { key: Key::load(directory)?, issuer, client_id, client_secret, codes: Codes::default() })
    }

    /// Adds the provider's routes to a server, which keeps the provider. The pages need the
    /// templates' fairing.
    #[must_use]
    pub fn mount(self, rocket: Rocket<Build>) -> Rocket<Build> {
        rocket.manage(self).mount(
            PATH,
            routes![
                discovery::configuration,
                discovery::jwks,
                tokeninfo::get,
                tokeninfo::post,
                mint::mint,
                authorize::ask,
                authorize::answer,
                token::exchange,
            ],
        )
    }
}
