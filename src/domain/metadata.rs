//! The discovery document of an OpenID provider (OpenID Connect Discovery 1.0 §3, RFC 8414 §2).

use url::Url;

use super::json::Object;
use super::refusal::visible;
use super::secure_url::secure;

/// The end of every discovery document's URL.
pub const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// The end of the URL of every document about security events.
const SHARED_SIGNALS: &str = "/.well-known/ssf-configuration";

/// The sender of a provider's security events (OpenID Shared Signals Framework 1.0 §7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmitter {
    pub issuer: String,
    /// `jwks_uri`.
    pub jwks_url: Url,
}

/// The published endpoints of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// `jwks_uri`.
    pub jwks_url: Option<Url>,
    /// `introspection_endpoint`.
    pub introspection_url: Option<Url>,
    /// `authorization_endpoint`.
    pub authorization_url: Option<Url>,
    /// `token_endpoint`.
    pub token_url: Option<Url>,
    /// `revocation_endpoint`.
    pub revocation_url: Option<Url>,
    /// `token_endpoint_auth_methods_supported`. If absent, the standard means `client_secret_basic`.
    pub token_auth_methods: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It names another issuer (OpenID Connect Discovery 1.0 §4.3).
    #[error("`issuer` is {}, which is not the configured one", _0.as_deref().unwrap_or("missing"))]
    Issuer(Option<String>),
    /// The URL of an endpoint is not one that a secret may be sent to.
    #[error("an endpoint is not an https URL")]
    Endpoint,
}

/// Returns the URL of an issuer's discovery document (OpenID Connect Discovery 1.0 §4.1).
pub fn address(issuer: &Url) -> Url {
    let mut address = issuer.clone();
    address.set_path(&format!("{}{WELL_KNOWN}", issuer.path().trim_end_matches('/')));
    address
}

/// Returns the URL of an issuer's document about security events: its path comes last (OpenID Shared Signals Framework
/// 1.0 §7.2).
pub fn transmitter_address(issuer: &Url) -> Url {
    let mut address = issuer.clone();
    address.set_path(&format!("{SHARED_SIGNALS}{}", issuer.path().trim_end_matches('/')));
    address
}

impl Transmitter {
    /// Reads the document. It has to be that of `issuer`, if one is expected.
    pub fn read(document: &Object, issuer: Option<&str>) -> Result<Self, Unfit> {
        let named = document.str("issuer");
        let named_well = named.filter(|name| issuer.is_none_or(|issuer| issuer == *name));
        let named = named_well.ok_or_else(|| Unfit::Issuer(named.map(visible)))?;
        let jwks_url = document.str("jwks_uri").and_then(|text| Url::parse(text).ok()).filter(secure);
        Ok(Self { issuer: named.to_owned(), jwks_url: jwks_url.ok_or(Unfit::Endpoint)? })
    }
}

impl Metadata {
    /// Reads the discovery document of that issuer.
    pub fn read(document: &Object, issuer: &str) -> Result<Self, Unfit> {
        if document.str("issuer") != Some(issuer) {
            return Err(Unfit::Issuer(document.str("issuer").map(visible)));
        }
        let endpoint = |name| match document.get(name) {
            None => Ok(None),
            Some(value) => value
                .as_str()
                .and_then(|text| Url::parse(text).ok())
                // A provider with an `https` issuer must not redirect calls to this machine's own services.
                .filter(|url| secure(url) && (url.scheme() == "https" || issuer.starts_with("http://")))
                .map(Some)
                .ok_or(Unfit::Endpoint),
        };
        Ok(Self {
            jwks_url: endpoint("jwks_uri")?,
            introspection_url: endpoint("introspection_endpoint")?,
            authorization_url: endpoint("authorization_endpoint")?,
            token_url: endpoint("token_endpoint")?,
            revocation_url: endpoint("revocation_endpoint")?,
            token_auth_methods: document.get("token_endpoint_auth_methods_supported").and_then(|methods| {
                let methods = methods.as_array()?.iter();
                Some(methods.filter_map(|method| method.as_str().map(str::to_owned)).collect())
            }),
        })
    }
}
