//! One identity provider: `[default.idp]` and `IDP_*`, or `[default.providers.<name>]`.

mod reader;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use url::Url;

pub(super) use self::reader::{read, read_each};
use self::values::Client;
use super::error;
use super::protocol::{ClientAuthentication, Verify};
use super::text::{self, DAY};
use crate::domain::claims::Nonces;
use crate::domain::id_token::Format;
use crate::domain::linking::{Doubt, Policy};
use crate::domain::presets::apple::ClientKey;
use crate::domain::presets::microsoft::Tenants;
use crate::domain::presets::{Dialect, Preset, Protocol, google};
use crate::domain::{Binding, Issuers, Link, NonceForm, NonceRule};
use crate::secret::{Replaceable, Secret};

/// A provider's settings, valid as a whole. Each field is a setting, or is derived from settings
/// when they are read. Defaults come from the preset, then from `presets::OF_EACH`, then from the
/// field's type.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    /// The last segment of the sign-in path.
    pub name: String,
    /// The section of its settings: `idp` or `providers.<name>`.
    #[serde(skip)]
    pub key: String,
    pub preset: &'static Preset,
    /// If false, every sign-in gets `provider_disabled`.
    #[serde(deserialize_with = "text::flag")]
    pub enabled: bool,
    #[serde(deserialize_with = "values::client_id")]
    client_id: Option<String>,
    #[serde(deserialize_with = "text::list")]
    additional_client_ids: Vec<String>,
    /// Audiences that the provider puts into tokens beside ours, such as Zitadel's project and its
    /// other applications.
    #[serde(deserialize_with = "text::list")]
    pub additional_audiences: Vec<String>,
    /// Client ids of our applications; never empty. The first is the web or backend one.
    #[serde(skip)]
    pub client_ids: Vec<String>,
    /// The client secret, for the authorization-code flow and for token introspection.
    #[serde(deserialize_with = "values::secret")]
    pub client_secret: Option<Replaceable>,
    client_secret_file: Option<PathBuf>,
    pub verify: Verify,
    /// The token-information endpoint; `None` if it is not used or has to be discovered.
    #[serde(deserialize_with = "values::endpoint")]
    pub tokeninfo_url: Option<Url>,
    /// The URL of the keys; `None` if they are not used or have to be discovered.
    #[serde(deserialize_with = "values::endpoint")]
    pub jwks_url: Option<Url>,
    /// The URL of the document that names the issuer and the keys of its security events (OpenID
    /// Shared Signals Framework 1.0 §7). Without one, it is looked for below the issuer, and then
    /// its keys are the keys of its tokens.
    #[serde(deserialize_with = "values::endpoint")]
    pub ssf_url: Option<Url>,
    /// The issuer whose discovery document names the endpoints that are not set.
    #[serde(deserialize_with = "values::issuer")]
    pub issuer: Option<String>,
    /// The URL of that discovery document.
    #[serde(skip)]
    pub discovery: Option<Url>,
    #[serde(deserialize_with = "values::endpoint")]
    pub authorization_url: Option<Url>,
    #[serde(deserialize_with = "values::endpoint")]
    pub token_url: Option<Url>,
    /// Our authentication at the token, revocation and introspection endpoints. `None` uses HTTP
    /// Basic, and at the first two follows the discovery document.
    pub token_auth: Option<ClientAuthentication>,
    /// The endpoint that revokes tokens (RFC 7009).
    #[serde(deserialize_with = "values::endpoint")]
    pub revocation_url: Option<Url>,
    #[serde(deserialize_with = "values::apples_id")]
    team_id: Option<String>,
    #[serde(deserialize_with = "values::apples_id")]
    key_id: Option<String>,
    #[serde(deserialize_with = "values::secret")]
    private_key: Option<Secret<String>>,
    private_key_file: Option<PathBuf>,
    #[serde(skip)]
    pub client_key: Option<Arc<ClientKey>>,
    #[serde(deserialize_with = "values::issuers")]
    pub issuers: Issuers,
    tenants: Option<Tenants>,
    /// If not empty, `hd` must be one of these (lower case).
    #[serde(deserialize_with = "values::domains")]
    pub allowed_domains: Vec<String>,
    pub token_format: Format,
    nonce: NonceRule,
    nonce_form: NonceForm,
    clients: BTreeMap<String, Client>,
    #[serde(skip)]
    pub nonces: Nonces,
    /// Treats an absent `email_verified` as true.
    #[serde(deserialize_with = "text::flag")]
    pub trust_email: bool,
    /// Oldest accepted `iat`, in seconds before now.
    #[serde(deserialize_with = "text::seconds::<60, DAY, _>")]
    pub max_token_age: u32,
    #[serde(deserialize_with = "text::count")]
    pub max_calls: u32,
    link: Link,
    unverified_email: Doubt,
    missing_email: Doubt,
    recycled_email: Doubt,
    #[serde(skip)]
    pub policy: Policy,
}

/// The section of the default provider.
pub(super) const DEFAULT: &str = "idp";

impl Provider {
    /// Returns the deviations of the claims of this provider.
    pub fn dialect(&self) -> Dialect {
        Dialect {
            client_id: self.preset.protocol == Protocol::Introspection,
            ..self.preset.dialect
        }
    }

    /// Returns the link rule for staff, which does not depend on the rule for the API. A Google
    /// account keeps an address of another mail service that it verified once, even if the mailbox
    /// has a new owner today.
    pub fn staff_link(&self) -> Link {
        if self.issuers.include(google::ISSUER) {
            Link::Authoritative
        } else {
            Link::Verified
        }
    }

    /// Returns the setting of an endpoint for the sign-in of staff that was left at Google.
    pub fn stray_endpoint(&self) -> Option<&'static str> {
        google::stray_endpoint(
            &self.issuers,
            self.authorization_url.as_ref(),
            self.token_url.as_ref(),
        )
    }

    /// Returns true if an authorization code of this client can be exchanged, and its token be
    /// revoked.
    pub fn revokes(&self, client_id: &str) -> bool {
        let known = |url: &Option<Url>| url.is_some() || self.discovery.is_some();
        let authenticates = self.client_key.is_some()
            || self.client_secret.is_some() && self.client_ids[0] == client_id;
        authenticates && known(&self.token_url) && known(&self.revocation_url)
    }

    /// Returns the rule for the binding of this client's sessions, if it differs from
    /// `session.binding`.
    pub fn binding(&self, client_id: &str) -> Option<Binding> {
        self.clients.get(client_id)?.binding
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
