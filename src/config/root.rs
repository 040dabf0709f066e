//! The known top-level keys, and the settings that belong to no section.

use std::collections::BTreeMap;

use figment::Figment;
use figment::Provider;
use figment::value::{Dict, Value};
use serde::Deserialize;
use url::Url;

use super::events::Raw as RawEvents;
use super::keys::Raw as RawKeys;
use super::log::{LogFormat, LogLevel};
use super::observers::Raw as RawObservers;
use super::provider::Raw as RawProvider;
use super::proxy::ForwardedHeader;
use super::rate_limit::Raw as RawRateLimit;
use super::secret_key::Raw as RawSecretKey;
use super::session::Raw as RawSession;
use super::webhook::{self, Raw as RawWebhook, Webhook};
use super::{Error, database_url, text};
use crate::domain::secure_url::secure;

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
const OUR_KEYS: [&str; 14] = [
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
    "webhooks",
];
/// The directory of a development build's database and secrets. Other builds have no such key.
const DEV_KEYS: &[&str] = if cfg!(all(feature = "dev", debug_assertions)) { &["dev_dir"] } else { &[] };
/// The URL, and numeric settings.
const DATABASE_KEYS: [&str; 5] =
    ["url", "min_connections", "max_connections", "connect_timeout", "idle_timeout"];

#[derive(Debug, Deserialize)]
pub(super) struct Root {
    pub public_url: Option<String>,
    /// Read by [`LogFormat::of`]. It stands here so that an invalid value is reported.
    #[serde(rename = "log_format")]
    _log_format: Option<LogFormat>,
    /// Read by [`LogLevel::of`], in the same way.
    #[serde(rename = "log_level")]
    _log_level: Option<LogLevel>,
    pub secret_key: Option<RawSecretKey>,
    #[serde(default)]
    pub session: RawSession,
    #[serde(default, deserialize_with = "text::seconds")]
    pub drain: Option<u32>,
    #[serde(default, deserialize_with = "text::list")]
    pub trusted_proxies: Vec<String>,
    #[serde(default)]
    pub forwarded_header: ForwardedHeader,
    #[serde(default)]
    pub rate_limit: RawRateLimit,
    #[serde(default)]
    pub events: RawEvents,
    #[serde(default)]
    pub keys: RawKeys,
    #[serde(default)]
    pub metrics: RawObservers,
    #[serde(default)]
    pub admin: RawAdmin,
    #[serde(default)]
    pub idp: RawProvider,
    #[serde(default)]
    pub providers: BTreeMap<String, RawProvider>,
    #[serde(default)]
    pub webhooks: BTreeMap<String, RawWebhook>,
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
        let misspelt = standard.iter().find(|known| strsim::damerau_levenshtein(known, name) <= 2);
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

pub(super) fn known(figment: &Figment, path: &str, dict: &Dict, lists: &[&[&str]]) -> Result<(), Error> {
    let unknown = dict.keys().find(|key| !lists.iter().any(|list| list.contains(&key.as_str())));
    unknown.map_or(Ok(()), |key| {
        Err(Error::at(
            figment,
            &format!("{path}{key}"),
            "is not a known key",
            "correct its spelling or remove it",
        ))
    })
}

/// Checks that the URL is an origin: `https`, or `http` on this machine, with nothing after the host and
/// port.
pub(super) fn public_url(figment: &Figment, url: Option<String>) -> Result<String, Error> {
    const KEY: &str = "public_url";
    const REMEDY: &str = "set it to the URL that clients use, such as https://id.example.com";
    let text = url.ok_or_else(|| Error::at(figment, KEY, "is missing", REMEDY))?;
    let url =
        Url::parse(&text).map_err(|e| Error::at(figment, KEY, format!("is not a URL ({e})"), REMEDY))?;
    if !secure(&url) {
        return Err(Error::at(figment, KEY, "must be https (http only on this machine)", REMEDY));
    }
    let origin = url.origin().ascii_serialization();
    if text.trim_end_matches('/') != origin {
        return Err(Error::at(figment, KEY, "must be an origin without a path, query or fragment", REMEDY));
    }
    Ok(origin)
}

/// Checks the database's settings without connecting to it.
pub(super) fn database(figment: &Figment) -> Result<(), Error> {
    const KEY: &str = "databases.vestibule.url";
    const REMEDY: &str = "set it to a URL such as postgres://vestibule:…@db.example.com/vestibule";
    let text: String =
        figment.extract_inner(KEY).map_err(|_| Error::at(figment, KEY, "is missing", REMEDY))?;
    database_url::check(&text).map_err(|(problem, remedy)| Error::at(figment, KEY, problem, remedy))?;
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

/// Checks the drain time. The default lets a proxy that probes every second see two failed probes.
pub(super) fn drain(figment: &Figment, seconds: Option<u32>) -> Result<u32, Error> {
    match seconds.unwrap_or(2) {
        seconds @ 0..=300 => Ok(seconds),
        _ => Err(Error::at(figment, "drain", "is out of range", "set it to 0 to 300 seconds")),
    }
}

pub(super) fn webhooks(figment: &Figment, raw: &BTreeMap<String, RawWebhook>) -> Result<Vec<Webhook>, Error> {
    raw.iter().map(|(name, raw)| webhook::read(figment, name, raw)).collect()
}
