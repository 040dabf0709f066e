//! The settings of a provider as they are written, each valid by itself.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::config::protocol::CERTIFICATE;
use crate::config::text;
use crate::domain::presets::apple;
use crate::domain::presets::microsoft::Tenants;
use crate::domain::{Binding, Issuers, NonceForm, NonceRule, metadata};
use crate::secret::Secret;

pub(super) const CLIENT_ID: &str = "set it to the client id that the provider issued";
pub(super) const ISSUER: &str =
    "set it to the provider's issuer URL, such as https://id.example.com/realms/people";

/// Settings that differ for one client id.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub nonce: Option<NonceRule>,
    pub nonce_form: Option<NonceForm>,
    /// `session.binding` for sessions of this client.
    pub binding: Option<Binding>,
}

/// Deserializes `issuer`, exactly as written.
pub(super) fn issuer<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let issuer = String::deserialize(deserializer)?;
    let url = read_endpoint::<D::Error>(&issuer)?;
    if url.path().ends_with(metadata::WELL_KNOWN) {
        let remedy = format_args!("remove `{}` from the end", metadata::WELL_KNOWN);
        return Err(D::Error::custom(format_args!(
            "is the URL of the discovery document; {remedy}"
        )));
    }
    if url.query().is_some() {
        return Err(D::Error::custom(format_args!(
            "must not have a query; {ISSUER}"
        )));
    }
    Ok(Some(issuer))
}

impl<'de> Deserialize<'de> for Tenants {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::named(&text::list(deserializer)?).map_err(D::Error::custom)
    }
}

pub(super) fn issuers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Issuers, D::Error> {
    text::list(deserializer).map(Issuers::Listed)
}

pub(super) fn domains<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(text::list(deserializer)?
        .iter()
        .map(|domain| domain.to_ascii_lowercase())
        .collect())
}

pub(super) fn endpoint<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Url>, D::Error> {
    read_endpoint(&String::deserialize(deserializer)?).map(Some)
}

fn read_endpoint<E: Error>(text: &str) -> Result<Url, E> {
    const REMEDY: &str = "set it to the provider's endpoint";
    let url = text::secure_url::<E>(
        text,
        if text.starts_with("http:") {
            CERTIFICATE
        } else {
            REMEDY
        },
    )?;
    if url
        .query_pairs()
        .any(|(name, _)| name == "id_token" || name == "token")
    {
        return Err(E::custom(format_args!(
            "must not have an `id_token` or `token` parameter; {REMEDY}"
        )));
    }
    Ok(url)
}

pub(super) fn client_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(deserializer)?;
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(D::Error::custom(format_args!(
            "is empty or contains whitespace; {CLIENT_ID}"
        )));
    }
    if id.contains(',') {
        let remedy = "keep one client id and list the others in additional_client_ids";
        return Err(D::Error::custom(format_args!("contains a comma; {remedy}")));
    }
    Ok(Some(id))
}

pub(super) fn secret<'de, D: Deserializer<'de>, T: From<Secret<String>>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let secret = Secret::<String>::deserialize(deserializer)?;
    if secret.expose().trim().is_empty() {
        return Err(D::Error::custom("is empty; set it or remove it"));
    }
    Ok(Some(secret.into()))
}

pub(super) fn apples_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(deserializer)?;
    if !apple::is_id(&id) {
        return Err(D::Error::custom(format_args!(
            "is not an id of Apple's; {}",
            apple::ID_REMEDY
        )));
    }
    Ok(Some(id))
}
