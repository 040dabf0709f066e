//! The top level: its keys, and the settings that belong to no section.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;

use figment::error::Kind;
use figment::value::Dict;
use figment::value::magic::RelativePathBuf;
use figment::{Figment, Provider};
use ipnet::IpNet;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

use super::error::{Error, nearest};
use super::events::Events;
use super::file::unreadable;
use super::keys::Keys;
use super::log::{LogFormat, LogLevel};
use super::observers::Observers;
use super::proxy::{self, ForwardedHeader};
use super::rate_limit::RateLimit;
use super::section::Section;
use super::session::Session;
use super::web::Web;
use super::webhook::Raw as RawWebhook;
use super::{database_url, secret_key, text};
use crate::secret::{Secret, SecretKeys};

/// It has no `Debug`: the settings of `providers` are in plain text.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Root {
    #[serde(deserialize_with = "origin")]
    pub public_url: Option<String>,
    /// Read by [`LogFormat::of`]. It stands here so that an invalid value is reported.
    log_format: Option<LogFormat>,
    /// Read by [`LogLevel::of`], in the same way.
    log_level: Option<LogLevel>,
    #[serde(deserialize_with = "secret_key::deserialize")]
    pub secret_key: Option<SecretKeys>,
    pub session: Session,
    #[serde(deserialize_with = "drain")]
    pub drain: Option<u32>,
    #[serde(deserialize_with = "proxy::trusted")]
    pub trusted_proxies: Vec<IpNet>,
    pub forwarded_header: ForwardedHeader,
    pub rate_limit: RateLimit,
    pub events: Events,
    pub keys: Keys,
    pub metrics: Observers,
    pub admin: Admin,
    pub databases: Databases,
    /// Each provider is read by itself (`provider/reader.rs`).
    idp: IgnoredAny,
    pub providers: Dict,
    pub webhooks: BTreeMap<String, RawWebhook>,
    pub web: Web,
    tls: Option<Tls>,
    /// The directory of a development build's database and secrets. Other builds have no such key.
    #[cfg(debug_assertions)]
    dev_dir: IgnoredAny,
    // Read by Rocket (its configuration guide, "Overview") and its companion crates.
    address: IgnoredAny,
    port: IgnoredAny,
    workers: IgnoredAny,
    max_blocking: IgnoredAny,
    ident: IgnoredAny,
    ip_header: IgnoredAny,
    limits: IgnoredAny,
    cli_colors: IgnoredAny,
    keep_alive: IgnoredAny,
    shutdown: IgnoredAny,
    temp_dir: IgnoredAny,
    template_dir: IgnoredAny,
    profile: IgnoredAny,
    proxy_proto_header: IgnoredAny,
}

/// `[default.admin]`: the pages for staff.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Admin {
    /// The provider that staff sign in with; the default provider if this is not set.
    pub provider: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Databases {
    vestibule: Database,
}

/// `[default.databases.vestibule]`. Times are in seconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// The URL, which a valid configuration has.
    pub url: Option<Secret<String>>,
    pub min_connections: u32,
    /// 16 if this is not set.
    #[serde(deserialize_with = "one_or_more")]
    pub max_connections: Option<u32>,
    /// The URL's `connect_timeout` if this is not set, otherwise two seconds.
    pub connect_timeout: Option<u32>,
    pub idle_timeout: Option<u32>,
}

/// `[default.tls]`, which Rocket reads. It ignores `mutual` in this build.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Tls {
    certs: IgnoredAny,
    key: IgnoredAny,
    ciphers: IgnoredAny,
    prefer_server_cipher_order: IgnoredAny,
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = u32::deserialize(deserializer)?;
    if number == 0 {
        Err(D::Error::custom("is out of range; set it to 1 or more"))
    } else {
        Ok(Some(number))
    }
}

impl Root {
    pub fn read(figment: &Figment) -> Result<Self, Error> {
        let root = figment.extract().map_err(|e| Error::from_figment(&e))?;
        tables(figment)?;
        Ok(root)
    }

    /// Returns the keys of the top level.
    fn keys() -> &'static [&'static str] {
        let unknown = Figment::from(("?", "")).extract::<Self>();
        match unknown.map_err(|error| error.kind) {
            Err(Kind::UnknownField(_, keys)) => keys,
            _ => &[],
        }
    }
}

/// Checks the names of the tables in the file, which are profiles. A section without `default.`
/// before it would be one, and would silently set nothing.
fn tables(figment: &Figment) -> Result<(), Error> {
    let all = figment.data().map_err(|e| Error::from_figment(&e))?;
    let is_key = |name: &str| Root::keys().contains(&name);
    for (profile, table) in all {
        let name = profile.as_str().as_str();
        let standard = ["default", "global", "debug", "release"];
        if standard.contains(&name) || profile == *figment.profile() {
            continue;
        }
        let place = table
            .values()
            .next()
            .and_then(|value| figment.get_metadata(value.tag()));
        let misspelt = nearest(name, &standard);
        let (name, remedy) = match (misspelt, table.keys().find(|key| !is_key(key))) {
            _ if is_key(name) => (name.to_owned(), format!("write `[default.{name}]`")),
            (Some(known), _) => (name.to_owned(), format!("correct it to `[{known}]`")),
            (None, Some(key)) => (
                format!("{name}.{key}"),
                format!("write `[default.{name}.{key}]`, correct it, or remove it"),
            ),
            (None, None) => continue,
        };
        return Err(Error::of_table(place, &name, remedy));
    }
    Ok(())
}

pub(super) const PUBLIC_URL: &str =
    "set it to the URL that clients use, such as https://id.example.com";

fn origin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    text::origin(&String::deserialize(deserializer)?, PUBLIC_URL).map(Some)
}

fn drain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    text::time(deserializer, 0..=300, "set it to 0 to 300 seconds").map(Some)
}

impl Databases {
    /// Checks the URL without connecting to the database.
    pub fn check(&self, figment: &Figment) -> Result<(), Error> {
        let settings = Section {
            figment,
            key: "databases.vestibule",
        };
        let url = settings.require("url", self.vestibule.url.as_ref(), database_url::EXAMPLE)?;
        database_url::check(url.expose())
            .map_err(|(problem, remedy)| settings.error("url", &problem, &remedy))?;
        if let Some(Err(error)) = env::var_os("PGSSLROOTCERT").map(File::open) {
            let (problem, remedy) = unreadable(&error);
            return Err(settings.error(
                "url",
                &format!("is used with PGSSLROOTCERT, which {problem}"),
                remedy,
            ));
        }
        Ok(())
    }
}

/// Checks that the files of `[default.tls]` can be read. Rocket reports some mistakes only after
/// the port is open.
pub(super) fn tls(figment: &Figment) -> Result<(), Error> {
    for key in ["tls.certs", "tls.key"] {
        // Otherwise the value is the certificate itself.
        let Ok(path) = figment.extract_inner::<RelativePathBuf>(key) else {
            continue;
        };
        File::open(path.relative()).map_err(|error| {
            let (problem, remedy) = unreadable(&error);
            Error::at(figment, key, problem, remedy)
        })?;
    }
    Ok(())
}
