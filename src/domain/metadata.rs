//! The discovery document of an OpenID provider (OpenID Connect Discovery 1.0 §3, RFC 8414 §2).

use std::collections::BTreeMap;

use serde_json::Value;
use strum::VariantArray;
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
    /// `jwks_uri`, which is optional.
    pub jwks_url: Option<Url>,
}

/// An endpoint that this service uses, by the member of the discovery document that names it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
pub enum Endpoint {
    #[strum(serialize = "jwks_uri")]
    Keys,
    #[strum(serialize = "introspection_endpoint")]
    Introspection,
    #[strum(serialize = "authorization_endpoint")]
    Authorization,
    #[strum(serialize = "token_endpoint")]
    Token,
    #[strum(serialize = "revocation_endpoint")]
    Revocation,
    #[strum(serialize = "userinfo_endpoint")]
    Userinfo,
}

/// The published endpoints of a provider. Each is judged only when it is used: a provider publishes
/// most of its document for others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    endpoints: BTreeMap<Endpoint, Url>,
    /// Endpoints whose value is not a URL that may be called.
    unusable: Vec<Endpoint>,
    /// `token_endpoint_auth_methods_supported`. If absent, the standard means `client_secret_basic`.
    pub token_auth_methods: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It names another issuer (OpenID Connect Discovery 1.0 §4.3).
    #[error("`issuer` is {}, which is not the configured one", _0.as_deref().unwrap_or("missing"))]
    Issuer(Option<String>),
    /// The URL of an endpoint is not safe for a secret.
    #[error("`{0}` is not an https URL")]
    Endpoint(Endpoint),
}

/// Returns the URL of an issuer's discovery document (OpenID Connect Discovery 1.0 §4.1).
pub fn address(issuer: &Url) -> Url {
    let mut address = issuer.clone();
    address.set_path(&format!(
        "{}{WELL_KNOWN}",
        issuer.path().trim_end_matches('/')
    ));
    address
}

/// Returns the URL of an issuer's document about security events: its path comes last (OpenID
/// Shared Signals Framework 1.0 §7.2).
pub fn transmitter_address(issuer: &Url) -> Url {
    let mut address = issuer.clone();
    address.set_path(&format!(
        "{SHARED_SIGNALS}{}",
        issuer.path().trim_end_matches('/')
    ));
    address
}

impl Transmitter {
    /// Reads the document, which has to name `issuer`, if one is expected.
    pub fn read(document: &Object, issuer: Option<&str>) -> Result<Self, Unfit> {
        let named = document.str("issuer");
        let named_well = named.filter(|name| issuer.is_none_or(|issuer| issuer == *name));
        let named = named_well.ok_or_else(|| Unfit::Issuer(named.map(visible)))?;
        let jwks_url = document.get("jwks_uri").map(|value| {
            let url = value.as_str().and_then(|text| Url::parse(text).ok());
            url.filter(secure).ok_or(Unfit::Endpoint(Endpoint::Keys))
        });
        Ok(Self {
            issuer: named.to_owned(),
            jwks_url: jwks_url.transpose()?,
        })
    }
}

impl Metadata {
    /// Reads the discovery document of that issuer.
    pub fn read(document: &Object, issuer: &str) -> Result<Self, Unfit> {
        if document.str("issuer") != Some(issuer) {
            return Err(Unfit::Issuer(document.str("issuer").map(visible)));
        }
        // A provider with an `https` issuer must not redirect calls to this machine's own services.
        let may_be_called =
            |url: &Url| secure(url) && (url.scheme() == "https" || issuer.starts_with("http://"));
        let mut endpoints = BTreeMap::new();
        let mut unusable = Vec::new();
        for endpoint in Endpoint::VARIANTS {
            let Some(value) = document.get((*endpoint).into()) else {
                continue;
            };
            let url = value.as_str().and_then(|text| Url::parse(text).ok());
            if let Some(url) = url.filter(may_be_called) {
                endpoints.insert(*endpoint, url);
            } else {
                unusable.push(*endpoint);
            }
        }
        let methods = document
            .get("token_endpoint_auth_methods_supported")
            .and_then(Value::as_array);
        let methods = methods
            .into_iter()
            .flatten()
            .filter_map(|method| method.as_str().map(str::to_owned));
        let token_auth_methods =
            Some(methods.collect()).filter(|methods: &Vec<_>| !methods.is_empty());
        Ok(Self {
            endpoints,
            unusable,
            token_auth_methods,
        })
    }

    /// Returns the URL of an endpoint; `None` if it is not published.
    pub fn url(&self, endpoint: Endpoint) -> Result<Option<&Url>, Unfit> {
        if self.unusable.contains(&endpoint) {
            return Err(Unfit::Endpoint(endpoint));
        }
        Ok(self.endpoints.get(&endpoint))
    }

    /// Returns a sentence about the members whose values cannot be used; `None` if all values can.
    pub fn warning(&self) -> Option<String> {
        let members: Vec<_> = self
            .unusable
            .iter()
            .map(|endpoint| format!("`{endpoint}`"))
            .collect();
        (!members.is_empty()).then(|| {
            format!(
                "{} of the discovery document: not an https URL",
                members.join(", ")
            )
        })
    }
}
