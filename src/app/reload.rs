//! Changed settings without a restart. After SIGHUP, the service reads its settings again, and
//! applies all changes or no change.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use figment::Figment;
use figment::value::{Dict, Value};
use rocket::fairing::{AdHoc, Fairing};
use rocket::{Orbit, Rocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use crate::background;
use crate::config::{Config, LogLevel, Webhook};
use crate::database::Database;
use crate::provider::Providers;
use crate::telemetry;
use crate::web::Db;
use crate::web::http::rate_limit::RateLimits;
use crate::webhooks::Webhooks;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The sections and keys that can change. Of a provider, the client secret can be replaced, too.
const CHANGEABLE: [&str; 3] = ["log_level", "rate_limit", "webhooks"];
const CLIENT_SECRET: [&str; 2] = ["client_secret", "client_secret_file"];

type Values = BTreeMap<String, Value>;

/// Receives SIGHUP, which no longer ends the process. In a terminal it still does.
#[derive(Debug)]
pub struct Hangup(Option<Signal>);

impl Hangup {
    /// Registers the signal's handler. A signal before the service serves is kept.
    pub fn listen() -> io::Result<Self> {
        let listens = !io::stdin().is_terminal();
        Ok(Self(
            listens.then(|| signal(SignalKind::hangup())).transpose()?,
        ))
    }
}

struct Reload {
    values: Values,
    /// Reads the settings as they are now.
    read: fn() -> Result<Figment>,
    database: Database,
    providers: Providers,
    limits: RateLimits,
    webhooks: Webhooks,
}

/// Returns the fairing that waits for SIGHUP. `figment` has the settings in use.
pub fn fairing(
    mut hangup: Hangup,
    figment: &Figment,
    read: fn() -> Result<Figment>,
) -> std::result::Result<impl Fairing + use<>, Box<figment::Error>> {
    let values = values(figment)?;
    Ok(AdHoc::on_liftoff("reload", move |rocket| {
        Box::pin(async move {
            let (Some(reload), Some(hangup)) = (Reload::of(rocket, values, read), hangup.0.take())
            else {
                return;
            };
            let kept = Arc::new(Mutex::new((reload, hangup)));
            background::spawn("reload", move || {
                let kept = kept.clone();
                async move {
                    let (reload, hangup) = &mut *kept.lock().await;
                    while hangup.recv().await.is_some() {
                        reload.run().await;
                    }
                }
            });
        })
    }))
}

fn values(figment: &Figment) -> std::result::Result<Values, Box<figment::Error>> {
    let mut values = Values::new();
    flatten(
        "",
        figment.extract::<Dict>().map_err(Box::new)?,
        &mut values,
    );
    Ok(values)
}

fn flatten(path: &str, dict: Dict, values: &mut Values) {
    for (key, value) in dict {
        match value {
            Value::Dict(_, dict) => flatten(&format!("{path}{key}."), dict, values),
            value => drop(values.insert(format!("{path}{key}"), value)),
        }
    }
}

impl Reload {
    fn of(rocket: &Rocket<Orbit>, values: Values, read: fn() -> Result<Figment>) -> Option<Self> {
        Some(Self {
            values,
            read,
            database: Database::clone(rocket.state::<Db>()?),
            providers: rocket.state::<Providers>()?.clone(),
            limits: rocket.state::<RateLimits>()?.clone(),
            webhooks: rocket.state::<Webhooks>()?.clone(),
        })
    }

    async fn run(&mut self) {
        if let Err(error) = self.apply().await {
            tracing::error!(%error, "no changed setting was applied; the service goes on with those that it has");
        }
    }

    async fn apply(&mut self) -> Result<()> {
        let figment = (self.read)()?;
        let values = values(&figment)?;
        let level = LogLevel::of(&figment);
        let config = Config::read(figment)?;
        let keys = self.values.keys().chain(values.keys());
        let differs = |key: &&String| self.values.get(*key) != values.get(*key);
        let mut changed: BTreeSet<String> =
            keys.filter(differs).map(|key| shortened(key)).collect();
        let fixed: Vec<_> = changed
            .iter()
            .filter(|key| !self.can_change(key, &config))
            .map(String::as_str)
            .collect();
        if !fixed.is_empty() {
            tracing::warn!(
                needs_restart = fixed.join(", "),
                "no changed setting was applied, since some need a restart; restart the service to apply all"
            );
            return Ok(());
        }
        let limited = changed.iter().any(|key| key.starts_with("rate_limit."));
        // Steps that can fail come first.
        if self.webhooks.configured() != config.webhooks {
            let differs = |new: &&Webhook| self.webhooks.of_name(&new.name).as_ref() != Some(*new);
            let differing = config.webhooks.iter().filter(differs);
            changed.extend(differing.map(|webhook| format!("webhooks.{}", webhook.name)));
            self.webhooks
                .change(&Webhooks::new(config.webhooks)?, &self.database)
                .await?;
        }
        changed.extend(self.providers.replace_secrets(&config.providers));
        if limited {
            self.limits.change(&config.rate_limit);
        }
        telemetry::set_level(level);
        self.values = values;
        if changed.is_empty() {
            tracing::info!("the settings were read again, and none has changed");
        } else {
            let changed = Vec::from_iter(changed).join(", ");
            tracing::info!(
                changed,
                "the settings were read again, and the changes applied"
            );
        }
        Ok(())
    }

    fn can_change(&self, key: &str, new: &Config) -> bool {
        let (section, field) = key.rsplit_once('.').unwrap_or(("", key));
        let replaces_secret = || {
            let mut old = self.providers.all().map(|provider| &provider.settings);
            let mut new = new.providers.values();
            old.any(|held| held.key == section && held.client_secret.is_some())
                && new.any(|held| held.key == section && held.client_secret.is_some())
        };
        CHANGEABLE.contains(&key.split('.').next().unwrap_or_default())
            || CLIENT_SECRET.contains(&field) && replaces_secret()
    }
}

/// Returns the key of a webhook's section for one within it.
fn shortened(key: &str) -> String {
    let depth = if key.starts_with("webhooks.") {
        2
    } else {
        usize::MAX
    };
    key.split('.').take(depth).collect::<Vec<_>>().join(".")
}
