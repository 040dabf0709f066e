//! A provider: its settings, and what the calls to it share.

use std::fmt;
use std::sync::{Arc, Once};

use reqwest::Client;

use super::document::{self, Document};
use super::endpoint::Endpoint;
use super::events;
use super::health::Health;
use crate::config;
use crate::domain::jwk::KeySet;
use crate::domain::metadata::Metadata;

#[derive(Debug, Clone)]
pub struct Provider {
    pub settings: config::Provider,
    pub(super) upstream: Arc<Upstream>,
}

/// The HTTP client, the endpoint and the published documents of one provider.
pub(super) struct Upstream {
    pub client: Client,
    pub endpoint: Endpoint,
    pub(super) health: Health,
    pub(super) metadata: Arc<Document<Metadata>>,
    pub(super) keys: Arc<Document<KeySet>>,
    pub(super) events: events::Documents,
    /// Used once the operator has been warned that its tokens have no `email`.
    pub(super) without_email: Once,
}

impl Upstream {
    pub fn new(client: Client, settings: &config::Provider) -> Self {
        let issuer = settings.issuer.clone().unwrap_or_default();
        let metadata = Document::new(
            client.clone(),
            &settings.name,
            "issuer",
            Box::new(move |document| Metadata::read(document, &issuer).map_err(document::unfit("issuer"))),
        );
        let setting = if settings.jwks_url.is_some() { "jwks_url" } else { "issuer" };
        let keys = document::keys(client.clone(), &settings.name, setting);
        let events = events::Documents::new(&client, settings);
        Self {
            client,
            endpoint: Endpoint::new(settings),
            health: Health::default(),
            metadata,
            keys,
            events,
            without_email: Once::new(),
        }
    }
}

impl Provider {
    /// Returns the same provider, which refuses tokens older than this, in seconds.
    pub fn with_max_age(&self, max_age: u32) -> Self {
        let mut settings = self.settings.clone();
        settings.max_token_age = settings.max_token_age.min(max_age);
        Self { settings, upstream: Arc::clone(&self.upstream) }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}
