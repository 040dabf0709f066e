//! The sources of settings, the later overriding the earlier: defaults, `Rocket.toml`, `ROCKET_*`,
//! `DATABASE_URL`, `IDP_*`, and the files named by `DATABASE_URL_FILE` and `ROCKET_SECRET_KEY_FILE`, which is
//! how containers and systemd pass secrets.

use std::path::Path;
use std::{env, fs};

use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};

use super::file::{self, Mistake, unreadable};

/// Returns the default settings. They are below those of the file: a bare `(key, value)` would be above its profiles.
#[must_use]
pub fn defaults() -> Figment {
    Figment::from(rocket::Config::default())
        // Rocket would believe an `X-Real-IP` header from any client.
        .merge(Serialized::default("ip_header", false))
        // The `Server` header would reveal the framework to everyone.
        .merge(Serialized::default("ident", false))
        .merge(Serialized::default("log_level", "off"))
}

/// Returns the settings of this process's environment, with the profile that `ROCKET_PROFILE` selects.
#[must_use]
pub fn figment() -> Figment {
    defaults()
        .merge(Serialized::default("log_level", "info"))
        .merge(Variables::new("ROCKET_CONFIG", config_file))
        .merge(Toml::file(Env::var_or("ROCKET_CONFIG", "Rocket.toml")).nested())
        .merge(Env::prefixed("ROCKET_").ignore(&["PROFILE", "CONFIG", "SECRET_KEY_FILE"]).global())
        .merge(Variables::new("DATABASE_URL", || Ok(database_url(env::var("DATABASE_URL").ok()))))
        .merge(Variables::new("DATABASE_URL_FILE", || Ok(database_url(in_file("DATABASE_URL")?))))
        .merge(Variables::new("ROCKET_SECRET_KEY_FILE", || Ok(secret_key(in_file("ROCKET_SECRET_KEY")?))))
        .merge(Variables::new("IDP_*", || Ok(idp())))
        .select(Profile::from_env_or("ROCKET_PROFILE", rocket::Config::DEFAULT_PROFILE))
}

/// Environment variables whose values stay text, so that a client id of digits does not become a number.
struct Variables {
    name: &'static str,
    read: fn() -> Result<Dict, String>,
}

impl Variables {
    const fn new(name: &'static str, read: fn() -> Result<Dict, String>) -> Self {
        Self { name, read }
    }
}

impl Provider for Variables {
    fn metadata(&self) -> Metadata {
        Metadata::named(format!("environment variable {}", self.name))
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Profile::Global.collect((self.read)()?))
    }
}

/// Reads the file that `<variable>_FILE` names.
fn in_file(variable: &str) -> Result<Option<String>, String> {
    let Some(path) = env::var_os(format!("{variable}_FILE")) else { return Ok(None) };
    if env::var_os(variable).is_some() {
        return Err(format!("is set in addition to {variable}; remove one of them"));
    }
    file::secret(Path::new(&path)).map(Some).map_err(told)
}

/// Formats a mistake for figment.
fn told((problem, remedy): Mistake) -> String {
    format!("{problem}; {remedy}")
}

/// Checks that the file named by `ROCKET_CONFIG` exists. Without it, all its settings would silently be
/// defaults.
fn config_file() -> Result<Dict, String> {
    let Some(path) = env::var_os("ROCKET_CONFIG") else { return Ok(Dict::new()) };
    let here = env::current_dir().map_err(|error| told(unreadable(&error)))?;
    let read = |folder: &Path| fs::read_to_string(folder.join(&path));
    match read(&here) {
        // Figment also looks for the file in the parent directories.
        Err(error) if !here.ancestors().skip(1).any(|folder| read(folder).is_ok()) => {
            Err(told(unreadable(&error)))
        }
        _ => Ok(Dict::new()),
    }
}

fn database_url(url: Option<String>) -> Dict {
    url.map(|url| nest("databases", nest("vestibule", one("url", url)))).unwrap_or_default()
}

fn secret_key(key: Option<String>) -> Dict {
    let Some(key) = key else { return Dict::new() };
    let keys: Vec<_> = key.lines().map(str::trim).filter(|key| !key.is_empty()).map(Value::from).collect();
    Dict::from([("secret_key".to_owned(), if keys.len() > 1 { keys.into() } else { key.into() })])
}

fn idp() -> Dict {
    // A name that is not Unicode is none of ours. In a value, the replacement character fails a later check.
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
