//! The sources of settings, the later overriding the earlier: defaults, `Rocket.toml`, `ROCKET_*`,
//! `DATABASE_URL`, `IDP_*`, and the files named by `DATABASE_URL_FILE` and
//! `ROCKET_SECRET_KEY_FILE`, which is how containers and systemd pass secrets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::{env, fs};

use figment::providers::{Format, Serialized, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider, util};

use super::file::{self, Mistake, unreadable};

pub type Environment = BTreeMap<OsString, OsString>;

/// Returns the default settings. They rank below the file's: a bare `(key, value)` would be above
/// its profiles.
pub fn defaults() -> Figment {
    Figment::from(rocket::Config::default())
        // Rocket would believe an `X-Real-IP` header from any client.
        .merge(Serialized::default("ip_header", false))
        // The `Server` header would reveal the framework to everyone.
        .merge(Serialized::default("ident", false))
        // Rocket's is a megabyte, which takes half a tenth of a second to parse. An app sends a
        // hundredth of that.
        .merge(Serialized::default("limits.json", 64 << 10))
        .merge(Serialized::default("log_level", "off"))
}

pub fn figment() -> Figment {
    figment_of(&env::vars_os().collect())
}

/// Returns the settings of an environment, with the profile that `ROCKET_PROFILE` selects.
pub fn figment_of(environment: &Environment) -> Figment {
    let mut rocket = rocket(environment);
    let profile = rocket.remove("profile").map(|name| Profile::new(&name));
    let config = rocket.remove("config");
    let url = environment
        .get(OsStr::new("DATABASE_URL"))
        .and_then(|url| url.to_str())
        .map(str::to_owned);
    let figment = defaults()
        .merge(Serialized::default("log_level", "info"))
        .merge(variable(
            "ROCKET_CONFIG",
            config.as_deref().map_or(Ok(Dict::new()), config_file),
        ))
        .merge(Toml::file(config.as_deref().unwrap_or("Rocket.toml")).nested());
    let figment = rocket.into_iter().fold(figment, |figment, (key, value)| {
        let Ok(value) = value.parse::<Value>();
        figment.merge(Variables {
            place: format!("environment variable ROCKET_{}", key.to_ascii_uppercase()),
            read: Ok(nest(&key, value)),
        })
    });
    figment
        .merge(variable("DATABASE_URL", Ok(database_url(url))))
        .merge(variable(
            "DATABASE_URL_FILE",
            in_file(environment, "DATABASE_URL").map(database_url),
        ))
        .merge(variable(
            "ROCKET_SECRET_KEY_FILE",
            in_file(environment, "ROCKET_SECRET_KEY").map(secret_key),
        ))
        .merge(variable("IDP_*", Ok(idp(environment))))
        .select(profile.unwrap_or(rocket::Config::DEFAULT_PROFILE))
}

/// The settings from environment variables, or the reason why they could not be read.
struct Variables {
    place: String,
    read: Result<Dict, String>,
}

fn variable(name: &str, read: Result<Dict, String>) -> Variables {
    Variables {
        place: format!("environment variable {name}"),
        read,
    }
}

impl Provider for Variables {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.place.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Profile::Global.collect(self.read.clone()?))
    }
}

/// Returns `ROCKET_*` by key. Figment's `Env` does the same, but reads only the environment of its
/// own process, which all tests share.
fn rocket(environment: &Environment) -> BTreeMap<String, String> {
    let variables = environment.iter().filter_map(|(name, value)| {
        let name = name.to_string_lossy().trim().to_ascii_lowercase();
        Some((
            name.strip_prefix("rocket_")?.to_owned(),
            value.to_string_lossy().into_owned(),
        ))
    });
    variables
        .filter(|(key, _)| key != "secret_key_file" && key.split('.').all(|part| !part.is_empty()))
        .collect()
}

/// Reads the file that `<variable>_FILE` names.
fn in_file(environment: &Environment, variable: &str) -> Result<Option<String>, String> {
    let Some(path) = environment.get(OsStr::new(&format!("{variable}_FILE"))) else {
        return Ok(None);
    };
    if environment.contains_key(OsStr::new(variable)) {
        return Err(format!(
            "is set in addition to {variable}; remove one of them"
        ));
    }
    file::secret(Path::new(path)).map(Some).map_err(told)
}

fn told((problem, remedy): Mistake) -> String {
    format!("{problem}; {remedy}")
}

/// Checks that the file named by `ROCKET_CONFIG` exists. Without it, all its settings would
/// silently be defaults.
fn config_file(path: &str) -> Result<Dict, String> {
    let here = env::current_dir().map_err(|error| told(unreadable(&error)))?;
    let read = |folder: &Path| fs::read_to_string(folder.join(path));
    match read(&here) {
        // Figment also looks for the file in the parent directories.
        Err(error) if !here.ancestors().skip(1).any(|folder| read(folder).is_ok()) => {
            Err(told(unreadable(&error)))
        }
        _ => Ok(Dict::new()),
    }
}

fn database_url(url: Option<String>) -> Dict {
    url.map(|url| nest("databases.vestibule.url", url))
        .unwrap_or_default()
}

fn secret_key(key: Option<String>) -> Dict {
    let Some(key) = key else { return Dict::new() };
    let keys: Vec<_> = key
        .lines()
        .map(str::trim)
        .filter(|key| !key.is_empty())
        .map(Value::from)
        .collect();
    nest(
        "secret_key",
        if keys.len() > 1 {
            Value::from(keys)
        } else {
            key.into()
        },
    )
}

/// Returns `IDP_*`. The values stay text, so that a client id of digits does not become a number.
fn idp(environment: &Environment) -> Dict {
    // A name that is not Unicode is not one of our settings. In a value, the replacement character
    // fails a later check.
    let keys: Dict = environment
        .iter()
        .filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix("IDP_")?.to_ascii_lowercase();
            Some((name, Value::from(value.to_string_lossy().into_owned())))
        })
        .collect();
    if keys.is_empty() {
        keys
    } else {
        nest("idp", keys)
    }
}

fn nest(path: &str, value: impl Into<Value>) -> Dict {
    util::nest(path, value.into())
        .into_dict()
        .unwrap_or_default()
}
