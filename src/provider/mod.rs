//! Identity providers: outbound HTTP, and the validation of their responses.
//!
//! [`Provider::verify`] (`verifier.rs`) does all of it: early refusals, the call, the claims. It holds no database
//! connection and knows nothing of users.

mod answer;
mod attempt;
mod authorization_code;
mod bulkhead;
mod call_stats;
mod client;
mod credentials;
mod document;
mod endpoint;
mod error;
mod events;
mod freshness;
mod health;
mod probe;
pub mod proxy;
mod revocation;
mod single_flight;
mod tokeninfo;
mod upstream;
mod userinfo;
mod verifier;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

pub use self::answer::Unavailable;
pub use self::authorization_code::{Exchanged, error_name};
pub use self::bulkhead::State as Breaker;
pub use self::call_stats::{BOUNDS, CallStats};
pub use self::client::ClientError;
pub use self::error::Error;
pub use self::events::EventError;
pub use self::revocation::{Code, Revocable};
pub use self::upstream::Provider;
use self::upstream::Upstream;
use crate::config;

#[derive(Debug, Clone)]
pub struct Providers(Arc<BTreeMap<String, Provider>>);

impl Providers {
    /// Builds the HTTP client. It makes no call yet.
    pub fn new(by_name: BTreeMap<String, config::Provider>) -> Result<Self, ClientError> {
        let client = client::build()?;
        let with_upstream = |settings| {
            let upstream = Arc::new(Upstream::new(client.clone(), &settings));
            Provider { settings, upstream }
        };
        let by_name = by_name
            .into_iter()
            .map(|(name, settings)| (name, with_upstream(settings)));
        Ok(Self(Arc::new(by_name.collect())))
    }

    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub fn call_stats(&self) -> BTreeMap<&str, CallStats> {
        let stats = |provider: &Provider| CallStats {
            failing: provider.upstream.health.failing(Instant::now()),
            ..provider.upstream.endpoint.call_stats()
        };
        self.0
            .iter()
            .map(|(name, provider)| (name.as_str(), stats(provider)))
            .collect()
    }

    /// Replaces the client secrets with the ones in changed settings, and returns the keys of the
    /// settings that differ. A provider without a secret stays without one.
    pub fn replace_secrets(&self, changed: &BTreeMap<String, config::Provider>) -> Vec<String> {
        let replaced = self.0.iter().filter_map(|(name, provider)| {
            let new = changed.get(name)?.client_secret.as_ref()?.now();
            let held = provider.settings.client_secret.as_ref()?;
            (held.now() != new).then(|| {
                held.replace(new);
                format!("{}.client_secret", provider.settings.key)
            })
        });
        replaced.collect()
    }

    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.get(name)
    }

    /// Returns the names of the other providers with the same issuer: there, the same subject is
    /// the same account.
    pub fn others_of_issuer(&self, provider: &Provider) -> Vec<&str> {
        let names = self.all().filter(|other| {
            other.settings.name != provider.settings.name
                && other.settings.issuers.overlap(&provider.settings.issuers)
        });
        names.map(|other| other.settings.name.as_str()).collect()
    }

    /// Returns the providers, including providers that are switched off.
    pub fn all(&self) -> impl Iterator<Item = &Provider> {
        self.0.values()
    }

    pub fn enabled(&self) -> impl Iterator<Item = &Provider> {
        self.all().filter(|provider| provider.settings.enabled)
    }
}
