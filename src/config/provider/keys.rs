//! The settings of a provider as they are written, before any check.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::{ClientAuthentication, Method, Verify};
use crate::config::preset::Preset;
use crate::config::text;
use crate::domain::claims::{NonceForm, NonceRule};
use crate::domain::id_token::Format;
use crate::domain::linking::{Doubt, Link};
use crate::secret::Secret;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Keys {
    pub preset: Option<Preset>,
    pub verify: Option<Verify>,
    pub client_id: Option<String>,
    pub client_secret: Option<Secret<String>>,
    pub client_secret_file: Option<PathBuf>,
    pub issuer: Option<String>,
    pub tokeninfo_url: Option<String>,
    pub tokeninfo_method: Option<Method>,
    pub tokeninfo_auth: Option<ClientAuthentication>,
    pub jwks_url: Option<String>,
    pub ssf_url: Option<String>,
    pub authorization_url: Option<String>,
    pub token_url: Option<String>,
    pub token_auth: Option<ClientAuthentication>,
    pub revocation_url: Option<String>,
    pub team_id: Option<String>,
    pub key_id: Option<String>,
    pub private_key: Option<Secret<String>>,
    pub private_key_file: Option<PathBuf>,
    pub name: Option<String>,
    #[serde(default, deserialize_with = "text::list")]
    pub issuers: Vec<String>,
    #[serde(default, deserialize_with = "text::list")]
    pub tenants: Vec<String>,
    #[serde(default, deserialize_with = "text::list")]
    pub additional_client_ids: Vec<String>,
    #[serde(default, deserialize_with = "text::list")]
    pub allowed_domains: Vec<String>,
    pub token_format: Option<Format>,
    pub nonce: Option<NonceRule>,
    pub nonce_form: Option<NonceForm>,
    #[serde(default)]
    pub clients: BTreeMap<String, Client>,
    #[serde(default, deserialize_with = "text::parsed")]
    pub trust_email: Option<bool>,
    #[serde(default, deserialize_with = "text::parsed")]
    pub enabled: Option<bool>,
    #[serde(default, deserialize_with = "text::parsed")]
    pub max_token_age: Option<u32>,
    #[serde(default, deserialize_with = "text::parsed")]
    pub max_calls: Option<u32>,
    #[serde(default, deserialize_with = "text::seconds")]
    pub verify_cache: Option<u32>,
    #[serde(default)]
    pub link: Link,
    #[serde(default)]
    pub unverified_email: Doubt,
    #[serde(default)]
    pub missing_email: Doubt,
    #[serde(default)]
    pub recycled_email: Doubt,
}

/// Settings that differ for one client id.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Client {
    pub nonce: Option<NonceRule>,
    pub nonce_form: Option<NonceForm>,
}
