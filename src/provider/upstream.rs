//! A provider: its settings, and the state that the calls to it share.

use std::fmt;
use std::sync::{Arc, Once};

use reqwest::Client;

use super::document::{self, Document};
use super::health::Health;
use super::{endpoint, events};
use crate::config::{self, Verify};
use crate::domain::Object;
use crate::domain::jwk::KeySet;
use crate::domain::metadata::{Endpoint, Metadata, Unfit};

#[derive(Debug, Clone)]
pub struct Provider {
    pub settings: config::Provider,
    pub(super) upstream: Arc<Upstream>,
}

/// The HTTP client, the endpoint and the published documents of one provider.
pub(super) struct Upstream {
    pub client: Client,
    pub endpoint: endpoint::Endpoint,
    pub(super) health: Health,
    pub(super) metadata: Arc<Document<Metadata>>,
    pub(super) keys: Arc<Document<KeySet>>,
    pub(super) events: events::Documents,
    /// Used once the operator has been warned that its tokens have no `email`.
    pub(super) without_email: Once,
    /// Used once the operator has been warned of published endpoints that cannot be used.
    pub(super) unusable_members: Once,
}

impl Upstream {
    pub fn new(client: Client, settings: &config::Provider) -> Self {
        let issuer = settings.issuer.clone().unwrap_or_default();
        let used = used_by_sign_ins(settings);
        let read = move |document: &Object| {
            let metadata = Metadata::read(document, &issuer)?;
            // A document that sign-ins cannot use must not replace a usable document.
            used.iter()
                .try_for_each(|endpoint| metadata.url(*endpoint).map(drop))?;
            Ok::<_, Unfit>(metadata)
        };
        let read = move |document: &Object| read(document).map_err(document::unfit("issuer"));
        let metadata = Document::new(client.clone(), &settings.name, "issuer", Box::new(read));
        let setting = if settings.jwks_url.is_some() {
            "jwks_url"
        } else {
            "issuer"
        };
        let keys = document::keys(client.clone(), &settings.name, setting);
        let events = events::Documents::new(&client, settings);
        let endpoint = endpoint::Endpoint::new(settings);
        let health = Health::default();
        let without_email = Once::new();
        let unusable_members = Once::new();
        Self {
            client,
            endpoint,
            health,
            metadata,
            keys,
            events,
            without_email,
            unusable_members,
        }
    }
}

/// Returns the endpoints that the verification of a token discovers.
fn used_by_sign_ins(settings: &config::Provider) -> Vec<Endpoint> {
    let keys = settings.verify != Verify::Tokeninfo && settings.jwks_url.is_none();
    let asks = settings.verify != Verify::Jwks && settings.tokeninfo_url.is_none();
    let used = [(keys, Endpoint::Keys), (asks, Endpoint::Introspection)];
    used.into_iter()
        .filter_map(|(is_used, endpoint)| is_used.then_some(endpoint))
        .collect()
}

impl Provider {
    /// Returns the same provider, which refuses tokens older than this, in seconds.
    pub fn with_max_age(&self, max_age: u32) -> Self {
        let mut settings = self.settings.clone();
        settings.max_token_age = settings.max_token_age.min(max_age);
        Self {
            settings,
            upstream: Arc::clone(&self.upstream),
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}
