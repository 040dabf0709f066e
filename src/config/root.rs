//! The top level: which keys there are at all, and the ones that belong to no section.

use std::collections::BTreeMap;

use figment::Figment;
use figment::value::{Dict, Value};
use serde::Deserialize;
use url::Url;

use super::events::Raw as RawEvents;
use super::keys::Raw as RawKeys;
use super::log::LogFormat;
use super::observers::Raw as RawObservers;
use super::provider::Raw as RawProvider;
use super::proxy::ForwardedHeader;
use super::rate_limit::Raw as RawRateLimit;
use super::session::Raw as RawSession;
use super::{Error, text, tls};
use crate::domain::address::secure;
use crate::secret::Secret;

/// Rocket's own keys (its configuration guide, "Overview"), and those of its companions.
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
const OUR_KEYS: [&str; 13] = [
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
];
const DATABASE_KEYS: [&str; 5] =
    ["url", "min_connections", "max_connections", "connect_timeout", "idle_timeout"];

/// Shortest accepted `secret_key`, in characters.
const MIN_SECRET_KEY: usize = 32;

#[derive(Debug, Deserialize)]
pub(super) struct Root {
    pub public_url: Option<String>,
    /// Read by [`LogFormat::of`]; here so that what is no format is found out.
    #[serde(rename = "log_format")]
    _log_format: Option<LogFormat>,
    pub secret_key: Option<Secret<String>>,
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
}

/// `[default.admin]`: the pages for staff.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdmin {
    /// The provider that staff sign in with; the default one unless it is named.
    pub provider: Option<String>,
}

impl Root {
    pub fn read(figment: &Figment) -> Result<Self, Error> {
        let all: Dict = figment.extract().map_err(|e| Error::from_figment(&e))?;
        known(figment, "", &all, &[&ROCKET_KEYS, &OUR_KEYS])?;
        tls::check(figment, &all)?;
        if let Some(Value::Dict(_, databases)) = all.get("databases") {
            known(figment, "databases.", databases, &[&["vestibule"]])?;
            if let Some(Value::Dict(_, ours)) = databases.get("vestibule") {
                known(figment, "databases.vestibule.", ours, &[&DATABASE_KEYS])?;
            }
        }
        figment.extract().map_err(|e| Error::from_figment(&e))
    }
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

/// An origin: `https`, or `http` to this machine, and nothing behind the host and port.
pub(super) fn public_url(figment: &Figment, url: Option<String>) -> Result<String, Error> {
    const KEY: &str = "public_url";
    const REMEDY: &str = "set it to the address that clients use, such as https://id.example.com";
    let text = url.ok_or_else(|| Error::at(figment, KEY, "is missing", REMEDY))?;
    let url =
        Url::parse(&text).map_err(|e| Error::at(figment, KEY, format!("is not a URL ({e})"), REMEDY))?;
    if !secure(&url) {
        return Err(Error::at(figment, KEY, "must be https (http only on this machine)", REMEDY));
    }
    let origin = url.origin().ascii_serialization();
    if text.trim_end_matches('/') != origin {
        return Err(Error::at(
            figment,
            KEY,
            "must be a bare origin, without a path or anything else",
            REMEDY,
        ));
    }
    Ok(origin)
}

/// The database's address must be there; whether it answers is found out later.
pub(super) fn database_url(figment: &Figment) -> Result<(), Error> {
    const KEY: &str = "databases.vestibule.url";
    const REMEDY: &str = "set it to an address such as postgres://vestibule:…@db.example.com/vestibule";
    let url: String =
        figment.extract_inner(KEY).map_err(|_| Error::at(figment, KEY, "is missing", REMEDY))?;
    let postgres = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    postgres.then_some(()).ok_or_else(|| Error::at(figment, KEY, "is not a PostgreSQL address", REMEDY))
}

/// A pool without connections is none. Whatever else is wrong with the number is found out by the pool.
pub(super) fn max_connections(figment: &Figment) -> Result<(), Error> {
    const KEY: &str = "databases.vestibule.max_connections";
    match figment.extract_inner::<u32>(KEY) {
        Ok(0) => Err(Error::at(figment, KEY, "is out of range", "set it to 1 or more")),
        _ => Ok(()),
    }
}

pub(super) fn secret_key(figment: &Figment, key: Option<Secret<String>>) -> Result<Secret<String>, Error> {
    const REMEDY: &str = "generate one with `openssl rand -base64 32`";
    let fail = |problem: &str| Err(Error::at(figment, "secret_key", problem, REMEDY));
    match key {
        None => fail("is missing"),
        Some(key) if key.expose().chars().count() < MIN_SECRET_KEY => {
            fail("is too short: it takes 32 characters")
        }
        Some(key) if distinct(key.expose()) < 8 => {
            fail("is no secret: it is made of too few different characters")
        }
        Some(key) => Ok(key),
    }
}

/// Long enough for a proxy that looks every second to see it twice.
pub(super) fn drain(figment: &Figment, seconds: Option<u32>) -> Result<u32, Error> {
    match seconds.unwrap_or(2) {
        seconds @ 0..=300 => Ok(seconds),
        _ => Err(Error::at(figment, "drain", "is out of range", "set it to 0 to 300 seconds")),
    }
}

fn distinct(text: &str) -> usize {
    text.chars().collect::<std::collections::BTreeSet<_>>().len()
}
