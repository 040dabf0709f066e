//! Where settings come from, the later overriding the earlier: defaults, `Rocket.toml`,
//! `ROCKET_*`, `DATABASE_URL`, `IDP_*`.

use std::env;

use figment::providers::{Env, Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};

/// What holds where nothing is set.
#[must_use]
pub fn defaults() -> Figment {
    Figment::from(rocket::Config::default())
        // Rocket would believe an `X-Real-IP` header from anyone.
        .merge(("ip_header", false))
        // What serves, and which version of it, is nobody's business.
        .merge(("ident", false))
        // One line per request is ours; Rocket's own would cost as much as the request.
        .merge(("log_level", "off"))
}

/// The settings of this process's environment, with the profile that `ROCKET_PROFILE` selects.
#[must_use]
pub fn figment() -> Figment {
    defaults()
        .merge(Toml::file(Env::var_or("ROCKET_CONFIG", "Rocket.toml")).nested())
        .merge(Env::prefixed("ROCKET_").ignore(&["PROFILE", "CONFIG"]).global())
        .merge(Variables::new("DATABASE_URL", database_url))
        .merge(Variables::new("IDP_*", idp))
        .select(Profile::from_env_or("ROCKET_PROFILE", rocket::Config::DEFAULT_PROFILE))
}

/// Environment variables whose values stay text: a client id of digits is not a number.
struct Variables {
    name: &'static str,
    read: fn() -> Dict,
}

impl Variables {
    const fn new(name: &'static str, read: fn() -> Dict) -> Self {
        Self { name, read }
    }
}

impl Provider for Variables {
    fn metadata(&self) -> Metadata {
        Metadata::named(format!("environment variable {}", self.name))
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Profile::Global.collect((self.read)()))
    }
}

fn database_url() -> Dict {
    let database = env::var("DATABASE_URL").map(|url| nest("databases", nest("vestibule", one("url", url))));
    database.unwrap_or_default()
}

fn idp() -> Dict {
    // What is not Unicode is no name of ours; in a value of ours, the replacement is found out later.
    let keys: Dict = env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix("IDP_")?.to_ascii_lowercase();
            Some((name, Value::from(value.to_string_lossy().into_owned())))
        })
        .collect();
    if keys.is_empty() { keys } else { nest("idp", keys) }
}

fn one(key: &str, value: String) -> Dict {
    Dict::from([(key.to_owned(), Value::from(value))])
}

fn nest(key: &str, dict: Dict) -> Dict {
    Dict::from([(key.to_owned(), Value::from(dict))])
}
