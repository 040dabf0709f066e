//! One identity provider: `[default.idp]` and `IDP_*`, or `[default.providers.<name>]`.

mod keys;
mod reader;

use serde::Deserialize;
use url::Url;

pub(super) use self::keys::Keys as Raw;
pub(super) use self::reader::{read, read_named};
use super::error;
use crate::domain::claims::{Dialect, Nonces};
use crate::domain::id_token::Format;
use crate::domain::issuer::Issuers;
use crate::domain::linking::{Link, Policy};
use crate::secret::Secret;

/// Says what to do about a provider's certificate that is missing or not trusted.
pub const CERTIFICATE: &str =
    "give that host a certificate, and name its authority in SSL_CERT_FILE where it is your own";

/// How a token is handed to the token-information endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// `GET ?id_token=…`
    #[default]
    Get,
    /// `POST`, as a field of a form.
    Post,
}

/// What tokens are verified with. One never stands in for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// The provider's token-information endpoint.
    Tokeninfo,
    /// The provider's published keys.
    Jwks,
    /// The keys and then the endpoint, which have to agree.
    Both,
}

/// What the token-information endpoint understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `id_token` alone.
    Tokeninfo,
    /// `id_token`, and the `client_id` that it must be for.
    TokeninfoForClient,
    /// Token introspection (RFC 7662).
    Introspection(ClientAuthentication),
}

/// How we prove to a token or introspection endpoint who asks (RFC 6749 §2.3, RFC 7662 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthentication {
    /// HTTP Basic.
    #[default]
    ClientSecretBasic,
    /// In the form.
    ClientSecretPost,
    /// Not at all.
    None,
}

/// A provider's settings, valid as a whole.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The last segment of the sign-in path.
    pub name: String,
    /// Where its settings are: `idp` or `providers.<name>`.
    pub key: String,
    /// False answers `provider_disabled` to everyone.
    pub enabled: bool,
    /// Client ids of our applications; never empty. The first is the web or backend one.
    pub client_ids: Vec<String>,
    /// For the authorization-code flow, and for token introspection.
    pub client_secret: Option<Secret<String>>,
    /// What its tokens are verified with.
    pub verify: Verify,
    /// The token-information endpoint, unless it is not asked or has to be discovered.
    pub tokeninfo_url: Option<Url>,
    /// How it wants to be asked.
    pub tokeninfo_method: Method,
    /// What it wants to be told.
    pub protocol: Protocol,
    /// Whether its endpoint is known to answer about an `id_token`.
    pub introspects_id_tokens: bool,
    /// Where the keys are, unless they are not used or have to be discovered.
    pub jwks_url: Option<Url>,
    /// The issuer that publishes the endpoints that are not set.
    pub issuer: Option<String>,
    /// Where it publishes them.
    pub discovery: Option<Url>,
    /// Where people sign in, for the authorization-code flow.
    pub authorization_url: Option<Url>,
    /// Where a code is exchanged, for the authorization-code flow.
    pub token_url: Option<Url>,
    /// How we prove there who asks; unless it is known, as the provider publishes, else by HTTP Basic.
    pub token_auth: Option<ClientAuthentication>,
    /// Accepted values of `iss`.
    pub issuers: Issuers,
    /// How its claims differ from the standard's.
    pub dialect: Dialect,
    /// When not empty, `hd` must be one of these (lower case).
    pub allowed_domains: Vec<String>,
    /// What its tokens look like.
    pub token_format: Format,
    /// What is expected of nonces.
    pub nonces: Nonces,
    /// Take an absent `email_verified` for true.
    pub trust_email: bool,
    /// Oldest accepted `iat`, in seconds before now.
    pub max_token_age: u32,
    /// Calls to the token-information endpoint at once.
    pub max_calls: usize,
    /// Seconds for which an answer of the endpoint is good; none is kept by default.
    pub verify_cache: u32,
    /// When an e-mail address may lead to an existing user.
    pub policy: Policy,
}

/// What Google puts into `iss`, however else it is set up here.
const GOOGLE: &str = "https://accounts.google.com";

impl Provider {
    /// The rule that staff are held to, whatever the API's is. A Google account keeps an address of any other mail
    /// service that it verified once, whoever has the mailbox today.
    #[must_use]
    pub fn staff_link(&self) -> Link {
        if self.issuers.include(GOOGLE) { Link::Authoritative } else { Link::Verified }
    }

    /// A setting by the names that an operator knows it by.
    #[must_use]
    pub fn setting(&self, field: &str) -> String {
        error::names(&format!("{}.{field}", self.key))
    }
}
