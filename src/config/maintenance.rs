//! Settings of the commands that need the database but no identity provider.

use std::collections::BTreeMap;

use figment::Figment;

use super::error::Error;
use super::events::Events;
use super::keys::Keys;
use super::provider::{self, read_each};
use super::root;
use super::secret_key;
use super::section::Section;
use super::session::{self, Session};
use super::webhook::{self, Raw as RawWebhook, Webhook};
use crate::secret::SecretKeys;

#[derive(Debug)]
pub struct Maintenance {
    pub figment: Figment,
    pub session: Session,
    pub events: Events,
    pub keys: Keys,
    /// Names of the identity providers, whose own settings may be missing.
    pub providers: Vec<String>,
    webhooks: BTreeMap<String, RawWebhook>,
    secret_key: Option<SecretKeys>,
}

impl Maintenance {
    pub fn read(figment: Figment) -> Result<Self, Error> {
        let root = root::Root::read(&figment)?;
        root.databases.check(&figment)?;
        let main = read_each(&figment, provider::DEFAULT, None)?.name;
        for name in root.providers.keys() {
            read_each(&figment, &format!("providers.{name}"), Some(name))?;
        }
        Ok(Self {
            session: session::check(&figment, root.session)?,
            events: root.events,
            keys: root.keys,
            providers: std::iter::once(main)
                .chain(root.providers.into_keys())
                .collect(),
            secret_key: root.secret_key,
            webhooks: root.webhooks,
            figment,
        })
    }

    pub fn secret_key(&self) -> Result<SecretKeys, Error> {
        let top = Section {
            figment: &self.figment,
            key: "",
        };
        top.require("secret_key", self.secret_key.clone(), secret_key::REMEDY)
    }

    pub fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        webhook::read(&self.figment, &self.webhooks)
    }
}
