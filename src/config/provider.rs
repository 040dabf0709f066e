//! One identity provider: `[default.idp]` and `IDP_*`, or `[default.providers.<name>]`.

mod keys;
mod reader;

use std::collections::BTreeMap;
use std::sync::Arc;

use url::Url;

pub(super) use self::keys::Keys as Raw;
pub(super) use self::reader::read;
use super::error;
use super::preset::Preset;
use super::protocol::{ClientAuthentication, Protocol, Verify};
use crate::domain::claims::{Dialect, Nonces};
use crate::domain::client_key::ClientKey;
use crate::domain::id_token::Format;
use crate::domain::linking::Policy;
use crate::domain::{Binding, Issuers, Link};
use crate::secret::Replaceable;

/// A provider's settings, valid as a whole.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The last segment of the sign-in path.
    pub name: String,
    /// The section of its settings: `idp` or `providers.<name>`.
    pub key: String,
    /// The preset, or `oidc` if it has none.
    pub kind: Preset,
    /// If false, every sign-in gets `provider_disabled`.
    pub enabled: bool,
    /// Client ids of our applications; never empty. The first is the web or backend one.
    pub client_ids: Vec<String>,
    /// The client secret, for the authorization-code flow and for token introspection.
    pub client_secret: Option<Replaceable>,
    pub verify: Verify,
    /// The token-information endpoint; `None` if it is not used or has to be discovered.
    pub tokeninfo_url: Option<Url>,
    pub protocol: Protocol,
    /// True if the endpoint is known to answer about an `id_token`.
    pub introspects_id_tokens: bool,
    /// The URL of the keys; `None` if they are not used or have to be discovered.
    pub jwks_url: Option<Url>,
    /// The URL of the document that names the issuer and the keys of its security events (OpenID Shared Signals Framework
    /// 1.0 §7). Without one, it is looked for below the issuer, and then its keys are the keys of its tokens.
    pub ssf_url: Option<Url>,
    /// The issuer whose discovery document names the endpoints that are not set.
    pub issuer: Option<String>,
    /// The URL of that discovery document.
    pub discovery: Option<Url>,
    pub authorization_url: Option<Url>,
    pub token_url: Option<Url>,
    /// Our authentication at the token, revocation and introspection endpoints. `None` uses HTTP Basic, and at the
    /// first two follows the discovery document.
    pub token_auth: Option<ClientAuthentication>,
    /// The endpoint that revokes tokens (RFC 7009).
    pub revocation_url: Option<Url>,
    pub client_key: Option<Arc<ClientKey>>,
    pub issuers: Issuers,
    pub dialect: Dialect,
    /// If not empty, `hd` must be one of these (lower case).
    pub allowed_domains: Vec<String>,
    pub token_format: Format,
    pub nonces: Nonces,
    /// `session.binding` by client id, where it differs.
    pub bindings: BTreeMap<String, Binding>,
    /// Treats an absent `email_verified` as true.
    pub trust_email: bool,
    /// Oldest accepted `iat`, in seconds before now.
    pub max_token_age: u32,
    pub max_calls: usize,
    pub policy: Policy,
}

/// The section of the default provider.
pub(super) const DEFAULT: &str = "idp";

/// Google's `iss`, also if Google is configured without its preset.
const GOOGLE: &str = "https://accounts.google.com";
const GOOGLE_HOSTS: [&str; 2] = ["accounts.google.com", "oauth2.googleapis.com"];

impl Provider {
    /// Returns the link rule for staff, which does not depend on the rule for the API. A Google account keeps
    /// an address of another mail service that it verified once, even if the mailbox has a new owner today.
    pub fn staff_link(&self) -> Link {
        if self.issuers.include(GOOGLE) { Link::Authoritative } else { Link::Verified }
    }

    /// Returns the field of an endpoint for the sign-in of staff that was left at Google, although the tokens, or the
    /// other endpoint, are another provider's.
    pub fn strayed_endpoint(&self) -> Option<&'static str> {
        let is_google = |url: &Url| url.host_str().is_some_and(|host| GOOGLE_HOSTS.contains(&host));
        let [page, token] = [&self.authorization_url, &self.token_url].map(|url| url.as_ref().map(is_google));
        let issued_by_google = self.issuers.include(GOOGLE);
        match (page, token) {
            (Some(true), token) if token == Some(false) || !issued_by_google => Some("authorization_url"),
            (page, Some(true)) if page == Some(false) || !issued_by_google => Some("token_url"),
            _ => None,
        }
    }

    /// Returns true if an authorization code of this client can be exchanged, and its token be revoked.
    pub fn revokes(&self, client_id: &str) -> bool {
        let known = |url: &Option<Url>| url.is_some() || self.discovery.is_some();
        let authenticates =
            self.client_key.is_some() || self.client_secret.is_some() && self.client_ids[0] == client_id;
        authenticates && known(&self.token_url) && known(&self.revocation_url)
    }

    /// Returns the rule for the binding of this client's sessions, if it differs from `session.binding`.
    pub fn binding(&self, client_id: &str) -> Option<Binding> {
        self.bindings.get(client_id).copied()
    }

    /// Returns true for the provider of `[default.idp]`.
    pub fn is_default(&self) -> bool {
        self.key == DEFAULT
    }

    /// Returns a setting by the names that an operator uses.
    pub fn setting(&self, field: &str) -> String {
        error::names(&format!("{}.{field}", self.key))
    }
}
