//! `[default.webhooks.<name>]`: a receiver of messages about users.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use figment::Figment;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use strum::{VariantArray, VariantNames};
use url::{Host, Url};

use super::error::Error;
use super::file::Mistake;
use super::section::Section;
use super::text;
use crate::domain::MessageType;
use crate::domain::network::Reach;
use crate::secret::Secret;

/// The prefix of a secret, as Standard Webhooks writes it.
const PREFIX: &str = "whsec_";
/// The most secrets that sign at a time: the current secret and its replacement.
const SECRETS: usize = 2;
type Secrets = Vec<Secret<Vec<u8>>>;
const URL: &str = "set it to the receiver's URL, such as https://shop.example.com/hooks";
const SECRET: &str = "set it to `whsec_` and the output of `openssl rand -base64 32`";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The section's name.
    pub name: String,
    /// The URL that messages are posted to. Receivers put keys into its path or its query.
    pub url: Secret<Url>,
    /// The keys that sign; never empty.
    pub secrets: Vec<Secret<Vec<u8>>>,
    /// The types of messages that it gets; never empty.
    pub types: Vec<MessageType>,
    /// The IP addresses that its host may have.
    pub reach: Reach,
}

impl Webhook {
    /// Returns the host and the port of the URL, which may be shown.
    pub fn host(&self) -> String {
        let url = self.url.expose();
        let host = url.host_str().unwrap_or_default();
        url.port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "url")]
    url: Option<Secret<Url>>,
    #[serde(default, deserialize_with = "secrets")]
    secret: Option<Secrets>,
    secret_file: Option<PathBuf>,
    #[serde(default = "every_type", deserialize_with = "types")]
    events: Vec<MessageType>,
    #[serde(default, deserialize_with = "text::flag")]
    private_network: bool,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret<Url>>, D::Error> {
    let url = text::secure_url(&String::deserialize(deserializer)?, URL)?;
    Ok(Some(Secret::new(url)))
}

fn secrets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secrets>, D::Error> {
    decode(text::list(deserializer)?.iter().map(String::as_str))
        .map(Some)
        .map_err(|(problem, remedy)| D::Error::custom(format_args!("{problem}; {remedy}")))
}

fn every_type() -> Vec<MessageType> {
    <MessageType as VariantArray>::VARIANTS.to_vec()
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MessageType>, D::Error> {
    let remedy = format!(
        "use one or more of: {}",
        <MessageType as VariantNames>::VARIANTS.join(", ")
    );
    let parse = |text: &str| text.parse().map_err(|_| "has an unknown type of message");
    let mut types: Vec<MessageType> = text::list_of(deserializer, parse, &remedy)?;
    if types.is_empty() {
        return Err(D::Error::custom(format_args!("is empty; {remedy}")));
    }
    types.sort_unstable();
    types.dedup();
    Ok(types)
}

/// Decodes one or two secrets of 192 to 512 bits.
fn decode<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Secrets, Mistake> {
    let secrets: Vec<_> = texts.map(secret).collect();
    if !(1..=SECRETS).contains(&secrets.len()) {
        let problem = "must have one secret, or two while one is replaced";
        return Err((
            problem.into(),
            "remove those that the receiver no longer accepts",
        ));
    }
    let problem = "has a secret that is not `whsec_` and the base64 of 24 to 64 bytes";
    secrets
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| (problem.into(), SECRET))
}

fn secret(text: &str) -> Option<Secret<Vec<u8>>> {
    let key = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
    (24..=64).contains(&key.len()).then(|| Secret::new(key))
}

pub(super) fn read(figment: &Figment, raw: &BTreeMap<String, Raw>) -> Result<Vec<Webhook>, Error> {
    let read = |(name, raw): (&String, &Raw)| {
        raw.read(
            name,
            Section {
                figment,
                key: &format!("webhooks.{name}"),
            },
        )
    };
    raw.iter().map(read).collect()
}

impl Raw {
    fn read(&self, name: &str, settings: Section<'_>) -> Result<Webhook, Error> {
        let remedy = "use 1 to 32 of a-z, 0-9, - and _";
        settings.refuse(
            !text::is_name(name),
            "",
            "is not a valid name of a webhook",
            remedy,
        )?;
        let url = settings.require("url", self.url.clone(), URL)?;
        let reach = match (url.expose().scheme(), self.private_network) {
            ("http", _) => Reach::ThisMachine,
            (_, true) => Reach::PrivateNetworks,
            (_, false) => Reach::Internet,
        };
        // The IP address of a name is checked at each connection. An IP address in the URL is never
        // looked up, so it is checked here.
        let ip = match url.expose().host() {
            Some(Host::Ipv4(ip)) => Some(ip.into()),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) | None => None,
        };
        let remedy = format!(
            "correct it, or set `webhooks.{name}.private_network = true` for a receiver in your own network"
        );
        let beyond = ip.is_some_and(|ip| !reach.permits(ip));
        settings.refuse(
            beyond,
            "url",
            "has an IP address that is not one of the internet",
            &remedy,
        )?;
        let parse =
            |text: String| decode(text.lines().map(str::trim).filter(|line| !line.is_empty()));
        let secrets = settings.secret(
            "secret",
            self.secret.clone(),
            self.secret_file.as_deref(),
            parse,
        )?;
        let secrets = settings.require("secret", secrets, SECRET)?;
        Ok(Webhook {
            name: name.to_owned(),
            url,
            secrets,
            types: self.events.clone(),
            reach,
        })
    }
}
