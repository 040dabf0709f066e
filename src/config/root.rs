//! The known top-level keys, and the settings that belong to no section.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;

use figment::value::magic::RelativePathBuf;
use figment::value::{Dict, Value};
use figment::{Figment, Provider};
use ipnet::IpNet;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::error::{Error, names, nearest};
use super::events::Events;
use super::file::unreadable;
use super::keys::Keys;
use super::log::{LogFormat, LogLevel};
use super::observers::Observers;
use super::proxy::{self, ForwardedHeader};
use super::rate_limit::RateLimit;
use super::session::Session;
use super::web::Web;
use super::webhook::Raw as RawWebhook;
use super::{database_url, secret_key, text};
use crate::secret::SecretKeys;

/// Keys of Rocket (its configuration guide, "Overview") and of its companion crates.
const ROCKET_KEYS: [&str; 18] = [
    "address",
    "port",
    "workers",
    "max_blocking",
    "ident",
    "ip_header",
    "limits",
    "tls",
    "log_level",
    "cli_colors",
    "keep_alive",
    "shutdown",
    "secret_key",
    "temp_dir",
    "template_dir",
    "databases",
    "profile",
    "proxy_proto_header",
];
const OUR_KEYS: [&str; 15] = [
    "admin",
    "drain",
    "log_format",
    "metrics",
    "keys",
    "public_url",
    "session",
    "events",
    "idp",
    "providers",
    "trusted_proxies",
    "forwarded_header",
    "rate_limit",
    "web",
    "webhooks",
];
/// The directory of a development build's database and secrets. Other builds have no such key.
const DEV_KEYS: &[&str] = if cfg!(debug_assertions) { &["dev_dir"] } else { &[] };
const TLS_KEYS: [&str; 4] = ["certs", "key", "ciphers", "prefer_server_cipher_order"];
/// The URL, and numeric settings.
const DATABASE_KEYS: [&str; 5] =
    ["url", "min_connections", "max_connections", "connect_timeout", "idle_timeout"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Root {
    #[serde(deserialize_with = "origin")]
    pub public_url: Option<String>,
    /// Read by [`LogFormat::of`]. It stands here so that an invalid value is reported.
    #[serde(rename = "log_format")]
    _log_format: Option<LogFormat>,
    /// Read by [`LogLevel::of`], in the same way.
    #[serde(rename = "log_level")]
    _log_level: Option<LogLevel>,
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
    pub admin: RawAdmin,
    /// Each is read by itself (`provider/reader.rs`).
    pub providers: BTreeMap<String, IgnoredAny>,
    pub webhooks: BTreeMap<String, RawWebhook>,
    pub web: Web,
}

/// `[default.admin]`: the pages for staff.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdmin {
    /// The provider that staff sign in with; the default provider if none is named.
    pub provider: Option<String>,
}

impl Root {
    pub fn read(figment: &Figment) -> Result<Self, Error> {
        let all: Dict = figment.extract().map_err(|e| Error::from_figment(&e))?;
        tables(figment)?;
        known(figment, "", &all, &[&ROCKET_KEYS, &OUR_KEYS, DEV_KEYS])?;
        if let Some(Value::Dict(_, databases)) = all.get("databases") {
            known(figment, "databases.", databases, &[&["vestibule"]])?;
            if let Some(Value::Dict(_, ours)) = databases.get("vestibule") {
                known(figment, "databases.vestibule.", ours, &[&DATABASE_KEYS])?;
            }
        }
        figment.extract().map_err(|e| Error::from_figment(&e))
    }
}

/// Checks the names of the tables in the file, which are profiles. A section without `default.` before it would be one, and
/// would silently set nothing.
fn tables(figment: &Figment) -> Result<(), Error> {
    let all = figment.data().map_err(|e| Error::from_figment(&e))?;
    let lists: [&[&str]; 3] = [&ROCKET_KEYS, &OUR_KEYS, DEV_KEYS];
    let is_key = |name: &str| lists.iter().any(|list| list.contains(&name));
    for (profile, table) in all {
        let name = profile.as_str().as_str();
        let standard = ["default", "global", "debug", "release"];
        if standard.contains(&name) || profile == *figment.profile() {
            continue;
        }
        let place = table.values().next().and_then(|value| figment.get_metadata(value.tag()));
        let misspelt = nearest(name, &standard);
        let (name, remedy) = match (misspelt, table.keys().find(|key| !is_key(key))) {
            _ if is_key(name) => (name.to_owned(), format!("write `[default.{name}]`")),
            (Some(known), _) => (name.to_owned(), format!("correct it to `[{known}]`")),
            (None, Some(key)) => {
                (format!("{name}.{key}"), format!("write `[default.{name}.{key}]`, correct it, or remove it"))
            }
            (None, None) => continue,
        };
        return Err(Error::of_table(place, &name, remedy));
    }
    Ok(())
}

fn known(figment: &Figment, path: &str, dict: &Dict, lists: &[&[&str]]) -> Result<(), Error> {
    let unknown = dict.keys().find(|key| !lists.iter().any(|list| list.contains(&key.as_str())));
    unknown.map_or(Ok(()), |key| {
        let remedy = match nearest(key, &lists.concat()) {
            Some(meant) => format!("write {}, or remove it", names(&format!("{path}{meant}"))),
            None => "correct its spelling or remove it".into(),
        };
        Err(Error::at(figment, &format!("{path}{key}"), "is not a known key", remedy))
    })
}

const PUBLIC_URL: &str = "set it to the URL that clients use, such as https://id.example.com";

fn origin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    text::origin(&String::deserialize(deserializer)?, PUBLIC_URL).map(Some)
}

pub(super) fn public_url(figment: &Figment, url: Option<String>) -> Result<String, Error> {
    url.ok_or_else(|| Error::at(figment, "public_url", "is missing", PUBLIC_URL))
}

pub(super) fn secret_key(figment: &Figment, keys: Option<SecretKeys>) -> Result<SecretKeys, Error> {
    keys.ok_or_else(|| Error::at(figment, "secret_key", "is missing", secret_key::REMEDY))
}

fn drain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    text::time(deserializer, 0..=300, "set it to 0 to 300 seconds").map(Some)
}

/// Checks the database's settings without connecting to it.
pub(super) fn database(figment: &Figment) -> Result<(), Error> {
    const KEY: &str = "databases.vestibule.url";
    const REMEDY: &str = "set it to a URL such as postgres://vestibule:…@db.example.com/vestibule";
    let text: String =
        figment.extract_inner(KEY).map_err(|_| Error::at(figment, KEY, "is missing", REMEDY))?;
    database_url::check(&text).map_err(|(problem, remedy)| Error::at(figment, KEY, problem, remedy))?;
    if let Some(Err(error)) = env::var_os("PGSSLROOTCERT").map(File::open) {
        let (problem, remedy) = unreadable(&error);
        return Err(Error::at(figment, KEY, format!("is used with PGSSLROOTCERT, which {problem}"), remedy));
    }
    for key in &DATABASE_KEYS[1..] {
        let path = format!("databases.vestibule.{key}");
        match figment.extract_inner::<u32>(&path) {
            Ok(0) if *key == "max_connections" => {
                return Err(Error::at(figment, &path, "is out of range", "set it to 1 or more"));
            }
            Err(error) if figment.contains(&path) => return Err(Error::from_figment(&error)),
            _ => {}
        }
    }
    Ok(())
}

/// Checks `[default.tls]`, which Rocket reads: refuses keys that this build ignores (`mutual`) and files that cannot be read.
/// Rocket reports some mistakes only after the port is open.
pub(super) fn tls(figment: &Figment) -> Result<(), Error> {
    let Ok(Value::Dict(_, tls)) = figment.find_value("tls") else { return Ok(()) };
    known(figment, "tls.", &tls, &[&TLS_KEYS])?;
    for key in ["tls.certs", "tls.key"] {
        // Otherwise the value is the certificate itself.
        let Ok(path) = figment.extract_inner::<RelativePathBuf>(key) else { continue };
        File::open(path.relative()).map_err(|error| {
            let (problem, remedy) = unreadable(&error);
            Error::at(figment, key, problem, remedy)
        })?;
    }
    Ok(())
}
