//! `[default.webhooks.<name>]`: a receiver of messages about users.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use figment::Figment;
use serde::{Deserialize, Deserializer};
use strum::{VariantArray, VariantNames};
use url::{Host, Url};

use super::{Error, file, text};
use crate::domain::message_type::MessageType;
use crate::domain::network::Reach;
use crate::domain::secure_url::secure;
use crate::secret::Secret;

/// The prefix of a secret, as Standard Webhooks writes it.
const PREFIX: &str = "whsec_";
/// The most secrets that sign at a time: the one in use, and the one that replaces it.
const SECRETS: usize = 2;

/// A receiver's settings.
#[derive(Debug, Clone)]
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
    #[must_use]
    pub fn host(&self) -> String {
        let url = self.url.expose();
        let host = url.host_str().unwrap_or_default();
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    url: Option<Secret<String>>,
    #[serde(default, deserialize_with = "secrets")]
    secret: Option<Secret<Vec<String>>>,
    secret_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "types")]
    events: Option<Vec<String>>,
    #[serde(default, deserialize_with = "text::parsed")]
    private_network: Option<bool>,
}

fn secrets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret<Vec<String>>>, D::Error> {
    text::list(deserializer).map(|texts| Some(Secret::new(texts)))
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    text::list(deserializer).map(Some)
}

pub(super) fn read(figment: &Figment, name: &str, raw: &Raw) -> Result<Webhook, Error> {
    Reader { figment, name }.read(raw)
}

struct Reader<'a> {
    figment: &'a Figment,
    name: &'a str,
}

impl Reader<'_> {
    fn error(&self, field: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        let key = format!("webhooks.{}{field}", self.name);
        Error::at(self.figment, &key, problem, remedy)
    }

    fn read(&self, raw: &Raw) -> Result<Webhook, Error> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if !(1..=32).contains(&self.name.len()) || !self.name.bytes().all(plain) {
            return Err(self.error(
                "",
                "is not a valid name of a webhook",
                "use 1 to 32 of a-z, 0-9, - and _",
            ));
        }
        let (url, reach) = self.url(raw)?;
        Ok(Webhook {
            name: self.name.to_owned(),
            url: Secret::new(url),
            secrets: self.secrets(raw)?,
            types: self.types(raw)?,
            reach,
        })
    }

    fn url(&self, raw: &Raw) -> Result<(Url, Reach), Error> {
        const FIELD: &str = ".url";
        const REMEDY: &str = "set it to the receiver's URL, such as https://shop.example.com/hooks";
        let text = raw.url.as_ref().ok_or_else(|| self.error(FIELD, "is missing", REMEDY))?;
        let url = Url::parse(text.expose())
            .map_err(|error| self.error(FIELD, format!("is not a URL ({error})"), REMEDY))?;
        if !secure(&url) {
            let problem = "must be https (http only to this machine), without a password or a fragment";
            return Err(self.error(FIELD, problem, REMEDY));
        }
        let reach = match (url.scheme(), raw.private_network.unwrap_or(false)) {
            ("http", _) => Reach::ThisMachine,
            (_, true) => Reach::PrivateNetworks,
            (_, false) => Reach::Internet,
        };
        // The IP address of a name is checked at each connection; one that is written in the URL is never looked up.
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => Some(ip.into()),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) | None => None,
        };
        if ip.is_some_and(|ip| !reach.permits(ip)) {
            let problem = "has an IP address that is not one of the internet";
            let remedy = format!(
                "correct it, or set `webhooks.{}.private_network = true` for a receiver in your own network",
                self.name
            );
            return Err(self.error(FIELD, problem, remedy));
        }
        Ok((url, reach))
    }

    fn secrets(&self, raw: &Raw) -> Result<Vec<Secret<Vec<u8>>>, Error> {
        const REMEDY: &str = "set it to `whsec_` and the output of `openssl rand -base64 32`";
        let (field, texts) = match (&raw.secret, &raw.secret_file) {
            (Some(_), Some(_)) => {
                let problem = "is set in addition to `secret`";
                return Err(self.error(".secret_file", problem, "remove one of them"));
            }
            (None, None) => return Err(self.error(".secret", "is missing", REMEDY)),
            (Some(texts), None) => (".secret", texts.clone()),
            (None, Some(path)) => {
                let text = file::secret(path)
                    .map_err(|(problem, remedy)| self.error(".secret_file", problem, remedy))?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                (".secret_file", Secret::new(lines.map(str::to_owned).collect()))
            }
        };
        let texts = texts.expose();
        if !(1..=SECRETS).contains(&texts.len()) {
            let problem = "must have one secret, or two while one is replaced";
            return Err(self.error(field, problem, "remove those that the receiver no longer accepts"));
        }
        texts.iter().map(|text| secret(text).ok_or(())).collect::<Result<_, _>>().map_err(|()| {
            let problem = "has a secret that is not `whsec_` and the base64 of 24 to 64 bytes";
            self.error(field, problem, REMEDY)
        })
    }

    fn types(&self, raw: &Raw) -> Result<Vec<MessageType>, Error> {
        let Some(texts) = &raw.events else { return Ok(<MessageType as VariantArray>::VARIANTS.to_vec()) };
        let known = || format!("use one or more of: {}", <MessageType as VariantNames>::VARIANTS.join(", "));
        if texts.is_empty() {
            return Err(self.error(".events", "is empty", known()));
        }
        let mut types: Vec<MessageType> = texts
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()
            .map_err(|_| self.error(".events", "has an unknown type of message", known()))?;
        types.sort_unstable();
        types.dedup();
        Ok(types)
    }
}

/// Decodes a secret of 192 to 512 bits.
fn secret(text: &str) -> Option<Secret<Vec<u8>>> {
    let key = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
    (24..=64).contains(&key.len()).then(|| Secret::new(key))
}
