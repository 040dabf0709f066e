//! The settings of a provider as they are written, each valid by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::config::preset::{Preset, Tenant};
use crate::config::protocol::{CERTIFICATE, ClientAuthentication, Verify};
use crate::config::text::{self, DAY};
use crate::domain::id_token::Format;
use crate::domain::linking::Doubt;
use crate::domain::secure_url::secure;
use crate::domain::{Binding, Link, NonceForm, NonceRule, metadata};
use crate::secret::Secret;

pub(super) const CLIENT_ID: &str = "set it to the client id that the provider issued";
pub(super) const ISSUER: &str =
    "set it to the provider's issuer URL, such as https://id.example.com/realms/people";
pub(super) const APPLES_ID: &str = "set it to the ten letters and digits that Apple's developer pages show";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Keys {
    pub preset: Option<Preset>,
    pub verify: Option<Verify>,
    #[serde(deserialize_with = "client_id")]
    pub client_id: Option<String>,
    #[serde(deserialize_with = "secret")]
    pub client_secret: Option<Secret<String>>,
    pub client_secret_file: Option<PathBuf>,
    pub issuer: Option<Discovered>,
    #[serde(deserialize_with = "endpoint")]
    pub tokeninfo_url: Option<Url>,
    #[serde(deserialize_with = "endpoint")]
    pub jwks_url: Option<Url>,
    #[serde(deserialize_with = "endpoint")]
    pub ssf_url: Option<Url>,
    #[serde(deserialize_with = "endpoint")]
    pub authorization_url: Option<Url>,
    #[serde(deserialize_with = "endpoint")]
    pub token_url: Option<Url>,
    pub token_auth: Option<ClientAuthentication>,
    #[serde(deserialize_with = "endpoint")]
    pub revocation_url: Option<Url>,
    #[serde(deserialize_with = "apples_id")]
    pub team_id: Option<String>,
    #[serde(deserialize_with = "apples_id")]
    pub key_id: Option<String>,
    #[serde(deserialize_with = "secret")]
    pub private_key: Option<Secret<String>>,
    pub private_key_file: Option<PathBuf>,
    pub name: Option<String>,
    #[serde(deserialize_with = "text::list")]
    pub issuers: Vec<String>,
    #[serde(deserialize_with = "tenant")]
    pub tenants: Option<Tenant>,
    #[serde(deserialize_with = "text::list")]
    pub additional_client_ids: Vec<String>,
    #[serde(deserialize_with = "text::list")]
    pub allowed_domains: Vec<String>,
    pub token_format: Option<Format>,
    pub nonce: Option<NonceRule>,
    pub nonce_form: Option<NonceForm>,
    pub clients: BTreeMap<String, Client>,
    #[serde(deserialize_with = "text::flag")]
    pub trust_email: bool,
    #[serde(deserialize_with = "text::flag")]
    pub enabled: Option<bool>,
    #[serde(deserialize_with = "text::seconds::<60, DAY, _, _>")]
    pub max_token_age: Option<u32>,
    #[serde(deserialize_with = "text::count")]
    pub max_calls: Option<u32>,
    pub link: Link,
    pub unverified_email: Doubt,
    pub missing_email: Doubt,
    pub recycled_email: Doubt,
}

/// Settings that differ for one client id.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Client {
    pub nonce: Option<NonceRule>,
    pub nonce_form: Option<NonceForm>,
    /// `session.binding` for sessions of this client.
    pub binding: Option<Binding>,
}

/// `issuer` exactly as written, and the URL of its discovery document.
#[derive(Debug, Clone)]
pub(in crate::config) struct Discovered {
    pub issuer: String,
    pub document: Url,
}

impl<'de> Deserialize<'de> for Discovered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let issuer = String::deserialize(deserializer)?;
        let url = read_endpoint::<D::Error>(&issuer)?;
        if url.path().ends_with(metadata::WELL_KNOWN) {
            let remedy = format_args!("remove `{}` from the end", metadata::WELL_KNOWN);
            return Err(D::Error::custom(format_args!("is the URL of the discovery document; {remedy}")));
        }
        if url.query().is_some() {
            return Err(D::Error::custom(format_args!("must not have a query; {ISSUER}")));
        }
        Ok(Self { issuer, document: metadata::address(&url) })
    }
}

fn endpoint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    read_endpoint(&String::deserialize(deserializer)?).map(Some)
}

fn read_endpoint<E: Error>(text: &str) -> Result<Url, E> {
    const REMEDY: &str = "set it to the provider's endpoint";
    let url = Url::parse(text).map_err(|e| E::custom(format_args!("is not a URL ({e}); {REMEDY}")))?;
    if !secure(&url) {
        let remedy = if url.scheme() == "http" { CERTIFICATE } else { REMEDY };
        let problem = "must be https (http only on this machine), without a password or a fragment";
        return Err(E::custom(format_args!("{problem}; {remedy}")));
    }
    if url.query_pairs().any(|(name, _)| name == "id_token" || name == "token") {
        return Err(E::custom(format_args!("must not have an `id_token` or `token` parameter; {REMEDY}")));
    }
    Ok(url)
}

fn client_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(deserializer)?;
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(D::Error::custom(format_args!("is empty or contains whitespace; {CLIENT_ID}")));
    }
    if id.contains(',') {
        let remedy = "keep one client id and list the others in additional_client_ids";
        return Err(D::Error::custom(format_args!("contains a comma; {remedy}")));
    }
    Ok(Some(id))
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret<String>>, D::Error> {
    let secret = Secret::<String>::deserialize(deserializer)?;
    if secret.expose().trim().is_empty() {
        return Err(D::Error::custom("is empty; set it or remove it"));
    }
    Ok(Some(secret))
}

fn apples_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(deserializer)?;
    if id.len() != 10 || !id.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(D::Error::custom(format_args!("is not an id of Apple's; {APPLES_ID}")));
    }
    Ok(Some(id))
}

/// Deserializes `tenants`. An empty list is none.
fn tenant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Tenant>, D::Error> {
    let list = text::list(deserializer)?;
    if list.is_empty() {
        return Ok(None);
    }
    let problem = "are neither ids nor one of `common`, `organizations` and `consumers`";
    let remedy = "set it to the ids of the organisations that may sign in";
    Tenant::read(&list).map(Some).ok_or_else(|| D::Error::custom(format_args!("{problem}; {remedy}")))
}
