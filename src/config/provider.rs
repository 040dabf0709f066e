//! One identity provider: `[default.idp]` and `IDP_*`, or `[default.providers.<name>]`.

use std::path::PathBuf;

use figment::Figment;
use serde::Deserialize;
use url::Url;

use super::address::secure;
use super::{Error, text};
use crate::domain::claims::NonceRule;
use crate::domain::id_token::Format;
use crate::domain::linking::{Doubt, Link, Policy};
use crate::secret::Secret;

const GOOGLE_AUTHORIZATION: &str = "https://accounts.google.com/o/oauth2/v2/auth";
const GOOGLE_TOKEN: &str = "https://oauth2.googleapis.com/token";
const GOOGLE_TOKENINFO: &str = "https://oauth2.googleapis.com/tokeninfo";
/// Google puts either spelling into its tokens.
const GOOGLE_ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];
const DAY: u32 = 24 * 60 * 60;

/// How a token is handed to the token-information endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// `GET ?id_token=…`
    #[default]
    Get,
    /// `POST`, as the one field of a form.
    Post,
}

/// A provider's settings, valid as a whole.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The last segment of the sign-in path.
    pub name: String,
    /// False answers `provider_disabled` to everyone.
    pub enabled: bool,
    /// Client ids of our applications; never empty. The first is the web or backend one.
    pub client_ids: Vec<String>,
    /// For the authorization-code flow only.
    pub client_secret: Option<Secret<String>>,
    /// The token-information endpoint.
    pub tokeninfo_url: Url,
    /// How it wants to be asked.
    pub tokeninfo_method: Method,
    /// Where people sign in, for the authorization-code flow.
    pub authorization_url: Option<Url>,
    /// Where a code is exchanged, for the authorization-code flow.
    pub token_url: Option<Url>,
    /// Accepted spellings of `iss`.
    pub issuers: Vec<String>,
    /// When not empty, `hd` must be one of these (lower case).
    pub allowed_domains: Vec<String>,
    /// What its tokens look like.
    pub token_format: Format,
    /// What a nonce on one side only means.
    pub nonce: NonceRule,
    /// Take an absent `email_verified` for true.
    pub trust_email: bool,
    /// Oldest accepted `iat`, in seconds before now.
    pub max_token_age: u32,
    /// When an e-mail address may lead to an existing user.
    pub policy: Policy,
}

/// The keys as they are spelt.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    client_id: Option<String>,
    client_secret: Option<Secret<String>>,
    client_secret_file: Option<PathBuf>,
    tokeninfo_url: Option<String>,
    authorization_url: Option<String>,
    token_url: Option<String>,
    #[serde(default)]
    tokeninfo_method: Method,
    name: Option<String>,
    #[serde(default, deserialize_with = "text::list")]
    issuers: Vec<String>,
    #[serde(default, deserialize_with = "text::list")]
    additional_client_ids: Vec<String>,
    #[serde(default, deserialize_with = "text::list")]
    allowed_domains: Vec<String>,
    token_format: Option<Format>,
    #[serde(default)]
    nonce: NonceRule,
    #[serde(default, deserialize_with = "text::parsed")]
    trust_email: Option<bool>,
    #[serde(default, deserialize_with = "text::parsed")]
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "text::parsed")]
    max_token_age: Option<u32>,
    #[serde(default)]
    link: Link,
    #[serde(default)]
    unverified_email: Doubt,
    #[serde(default)]
    missing_email: Doubt,
    #[serde(default)]
    recycled_email: Doubt,
}

/// The default provider, whose name is a setting.
pub(super) fn read(figment: &Figment, key: &str, mut raw: Raw) -> Result<Provider, Error> {
    let name = raw.name.take().unwrap_or_else(|| "idp".into());
    Reader { figment, key, name: &name, name_key: "name" }.read(raw)
}

/// A further provider, whose name is its key.
pub(super) fn read_named(figment: &Figment, key: &str, name: &str, raw: Raw) -> Result<Provider, Error> {
    let reader = Reader { figment, key, name, name_key: "" };
    if raw.name.is_some() {
        return Err(reader.error("name", "is set twice", "the section's own name is the provider's"));
    }
    reader.read(raw)
}

struct Reader<'a> {
    figment: &'a Figment,
    key: &'a str,
    name: &'a str,
    name_key: &'a str,
}

impl Reader<'_> {
    fn error(&self, field: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        let key = if field.is_empty() { self.key.to_owned() } else { format!("{}.{field}", self.key) };
        Error::at(self.figment, &key, problem, remedy)
    }

    fn read(&self, raw: Raw) -> Result<Provider, Error> {
        self.check_name()?;
        let client_ids = self.client_ids(raw.client_id.as_deref(), raw.additional_client_ids)?;
        let client_secret = self.client_secret(raw.client_secret, raw.client_secret_file)?;
        let google = raw.tokeninfo_url.as_deref().is_none_or(|url| url == GOOGLE_TOKENINFO);
        let tokeninfo_url = raw.tokeninfo_url.as_deref().unwrap_or(GOOGLE_TOKENINFO);
        let tokeninfo_url = self.url("tokeninfo_url", tokeninfo_url)?;
        let of_google = |url| google.then_some(url);
        let authorization_url = raw.authorization_url.as_deref().or(of_google(GOOGLE_AUTHORIZATION));
        let token_url = raw.token_url.as_deref().or(of_google(GOOGLE_TOKEN));
        if raw.issuers.is_empty() && !google {
            let remedy = "list what this provider puts into `iss`";
            return Err(self.error("issuers", "is missing", remedy));
        }
        let issuers =
            if raw.issuers.is_empty() { GOOGLE_ISSUERS.map(str::to_owned).to_vec() } else { raw.issuers };
        let max_token_age = raw.max_token_age.unwrap_or(DAY);
        if !(60..=DAY).contains(&max_token_age) {
            return Err(self.error("max_token_age", "is out of range", "set it to 60 to 86400 seconds"));
        }
        Ok(Provider {
            name: self.name.to_owned(),
            enabled: raw.enabled.unwrap_or(true),
            client_ids,
            client_secret,
            tokeninfo_url,
            tokeninfo_method: raw.tokeninfo_method,
            authorization_url: authorization_url.map(|url| self.url("authorization_url", url)).transpose()?,
            token_url: token_url.map(|url| self.url("token_url", url)).transpose()?,
            issuers,
            allowed_domains: raw.allowed_domains.iter().map(|domain| domain.to_ascii_lowercase()).collect(),
            token_format: raw.token_format.unwrap_or(if google { Format::Jwt } else { Format::Any }),
            nonce: raw.nonce,
            trust_email: raw.trust_email.unwrap_or(false),
            max_token_age,
            policy: Policy {
                link: raw.link,
                unverified_email: raw.unverified_email,
                missing_email: raw.missing_email,
                recycled_email: raw.recycled_email,
            },
        })
    }

    fn check_name(&self) -> Result<(), Error> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let sound = (1..=32).contains(&self.name.len()) && self.name.bytes().all(plain);
        sound.then_some(()).ok_or_else(|| {
            self.error(self.name_key, "is not a provider's name", "use 1 to 32 of a-z, 0-9, - and _")
        })
    }

    fn client_ids(&self, client_id: Option<&str>, additional: Vec<String>) -> Result<Vec<String>, Error> {
        const REMEDY: &str = "set it to the client id that the provider gave this application";
        let client_id = client_id.ok_or_else(|| self.error("client_id", "is missing", REMEDY))?;
        if client_id.is_empty() || client_id.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(self.error("client_id", "is empty or has a blank in it", REMEDY));
        }
        if client_id.contains(',') {
            let remedy = "keep one here and list the others under additional_client_ids";
            return Err(self.error("client_id", "has a comma in it", remedy));
        }
        let mut ids = vec![client_id.to_owned()];
        ids.extend(additional);
        Ok(ids)
    }

    fn client_secret(
        &self,
        secret: Option<Secret<String>>,
        file: Option<PathBuf>,
    ) -> Result<Option<Secret<String>>, Error> {
        match (secret, file) {
            (Some(_), Some(_)) => {
                Err(self.error("client_secret_file", "is set beside client_secret", "keep one of the two"))
            }
            (Some(secret), None) if secret.expose().trim().is_empty() => {
                Err(self.error("client_secret", "is empty", "set it or remove it"))
            }
            (secret, None) => Ok(secret),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                Ok(text) if !text.trim().is_empty() => Ok(Some(Secret::new(text.trim().to_owned()))),
                Ok(_) => {
                    Err(self.error("client_secret_file", "names an empty file", "put the secret into it"))
                }
                Err(error) => {
                    let problem = format!("names a file that cannot be read ({error})");
                    Err(self.error(
                        "client_secret_file",
                        problem,
                        "correct the path or the file's permissions",
                    ))
                }
            },
        }
    }

    fn url(&self, field: &str, text: &str) -> Result<Url, Error> {
        const REMEDY: &str = "set it to the provider's endpoint";
        let url = Url::parse(text).map_err(|e| self.error(field, format!("is not a URL ({e})"), REMEDY))?;
        if !secure(&url) {
            let problem = "must be https (http only on this machine), without a password or a fragment";
            return Err(self.error(field, problem, REMEDY));
        }
        if url.query_pairs().any(|(name, _)| name == "id_token") {
            return Err(self.error(field, "must not hold an `id_token` parameter", REMEDY));
        }
        Ok(url)
    }
}
