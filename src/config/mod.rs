//! The settings. All of them are read once and checked at the start. A wrong setting stops the
//! program before a port opens, with one line that names the key and its source.

mod database_url;
mod error;
mod events;
mod file;
mod keys;
mod log;
mod maintenance;
mod observers;
mod protocol;
mod provider;
mod proxy;
mod rate_limit;
mod root;
mod secret_key;
mod section;
mod session;
mod sources;
mod text;
mod web;
mod webhook;

use std::collections::BTreeMap;
use std::fmt;

use figment::Figment;

pub use self::error::Error;
pub use self::events::Events;
pub use self::keys::Keys;
pub use self::log::{LogFormat, LogLevel};
pub use self::maintenance::Maintenance;
pub use self::observers::Observers;
pub use self::protocol::{CERTIFICATE, ClientAuthentication, Verify};
pub use self::provider::Provider;
pub use self::proxy::{ForwardedHeader, Proxies};
pub use self::rate_limit::RateLimit;
pub use self::root::Database;
use self::section::Section;
pub use self::session::Session;
pub use self::sources::{Environment, defaults, figment, figment_of};
pub use self::web::Web;
pub use self::webhook::Webhook;
use crate::secret::SecretKeys;

pub struct Config {
    /// The settings of Rocket and of the database.
    pub figment: Figment,
    pub workers: usize,
    /// The public URL of the service, without a trailing slash; `iss` of our tokens.
    pub public_url: String,
    /// The key that encrypts stored secrets, and the one before it.
    pub secret_key: SecretKeys,
    /// Seconds for which the service goes on answering after SIGTERM.
    pub drain: u32,
    pub session: Session,
    pub events: Events,
    pub proxies: Proxies,
    pub rate_limit: RateLimit,
    pub observers: Observers,
    pub keys: Keys,
    pub admin_provider: Provider,
    /// Identity providers by their name in the sign-in path.
    pub providers: BTreeMap<String, Provider>,
    pub webhooks: Vec<Webhook>,
    pub web: Web,
}

/// Shows no setting: `figment` has the secrets in plain text.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

impl Config {
    /// Reads and checks the settings of the selected profile. The error is the first mistake found,
    /// in one line.
    pub fn read(figment: Figment) -> Result<Self, Error> {
        let root = root::Root::read(&figment)?;
        root::tls(&figment)?;
        // From here on, the key is Rocket's. We log one line per request; its own would cost as
        // much as the request.
        let figment = figment.merge(("log_level", "off"));
        let rocket: rocket::Config = figment.extract().map_err(|e| Error::from_figment(&e))?;
        let main = provider::read(&figment, provider::DEFAULT, None)?;
        let admin_provider = root.admin.provider.unwrap_or_else(|| main.name.clone());
        let mut providers = BTreeMap::from([(main.name.clone(), main)]);
        for name in root.providers.into_keys() {
            let key = format!("providers.{name}");
            let provider = provider::read(&figment, &key, Some(&name))?;
            if providers.insert(name, provider).is_some() {
                let problem = "has the name of the default provider";
                return Err(Error::at(&figment, &key, problem, "rename one of them"));
            }
        }
        let admin_provider = providers.get(&admin_provider).cloned().ok_or_else(|| {
            let names: Vec<_> = providers.keys().map(String::as_str).collect();
            let remedy = format!("set it to one of: {}", names.join(", "));
            Error::at(
                &figment,
                "admin.provider",
                "is not a configured provider",
                remedy,
            )
        })?;
        root.databases.check(&figment)?;
        let top = Section {
            figment: &figment,
            key: "",
        };
        let public_url = top.require("public_url", root.public_url, root::PUBLIC_URL)?;
        Ok(Self {
            workers: rocket.workers,
            web: root.web.at(&public_url),
            public_url,
            secret_key: top.require("secret_key", root.secret_key, secret_key::REMEDY)?,
            // A proxy that probes every second sees two failed probes.
            drain: root.drain.unwrap_or(2),
            session: session::check(&figment, root.session)?,
            events: root.events,
            proxies: proxy::read(&figment, root.trusted_proxies, root.forwarded_header)?,
            rate_limit: root.rate_limit,
            observers: root.metrics,
            keys: root.keys,
            webhooks: webhook::read(&figment, &root.webhooks)?,
            admin_provider,
            providers,
            figment,
        })
    }
}
