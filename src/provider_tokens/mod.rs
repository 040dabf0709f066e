//! Tokens that providers require to be revoked when an account is deleted (Apple, technical note
//! TN3194; App Store guideline 5.1.1).
//!
//! An app posts the authorization code of its SDK with a sign-in. A task exchanges it for a token,
//! which is kept encrypted. A trigger on `identities` (`migrations`) makes the token due once the
//! identity is gone, and the task revokes it: a statement that removes an identity never waits for
//! the provider. A token whose identity was linked again meanwhile is kept. Of a user's tokens for
//! a client, only the newest is kept: at Apple, revoking it ends the user's whole authorization.

mod schedule;
pub mod store;
mod task;

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use strum::VariantNames;
use uuid::{Builder, Uuid};

use self::store::{Owner, Stored, Summary};
use self::task::{Exchange, Revocation, Task};
use crate::config;
use crate::database::{Database, Error};
use crate::domain::VerifiedClaims;
use crate::keys::seal::{Seal, SealedBy, Unopened};
use crate::provider::Providers;
use crate::queue::{Attempts, Gauges, Readings, Stop, Tasks, keep_working};
use crate::secret::{Secret, SecretKeys};

/// The number of rows that a statement reads or seals again.
const BATCH: i64 = 500;
/// The number of parked tokens to which a statement gives another attempt.
const UNPARKED: i64 = 5000;

/// The tokens of providers, and the tasks that exchange and revoke them.
#[derive(Debug, Clone)]
pub struct ProviderTokens(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    providers: Providers,
    seal: Arc<Seal>,
    exchanges: Attempts,
    revocations: Attempts,
    readings: Arc<Readings>,
    tasks: Tasks,
}

/// A code or a token as it is stored, encrypted.
#[derive(Serialize, Deserialize)]
enum Contents {
    Code {
        code: String,
        redirect_uri: Option<String>,
    },
    Token {
        token: String,
    },
}

impl Contents {
    /// Seals the contents of the row with that id.
    fn seal(&self, seal: &Seal, id: Uuid) -> Result<Vec<u8>, Unopened> {
        seal.seal(
            &id.to_string(),
            serde_json::to_vec(self).map_err(|_| Unopened)?,
        )
    }

    fn open(seal: &Seal, id: Uuid, sealed: &[u8]) -> Result<Self, Unopened> {
        serde_json::from_slice(&seal.open(&id.to_string(), sealed)?).map_err(|_| Unopened)
    }
}

#[derive(Debug, Clone)]
pub struct PostedCode {
    pub code: Secret<String>,
    /// The redirect URI of the request that it was issued for, if that had one.
    pub redirect_uri: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readable {
    /// Encrypted by the current key.
    pub current: usize,
    /// Encrypted by the previous key.
    pub previous: usize,
    /// Encrypted by a key that is not in the settings.
    pub another: usize,
}

impl ProviderTokens {
    pub fn new(providers: &Providers, secret_key: &SecretKeys) -> Result<Self, Unopened> {
        let exchanges = Attempts::new("provider");
        let revocations = Attempts::new("provider");
        let readings = Arc::<Readings>::default();
        let tasks = Tasks::default();
        let providers = providers.clone();
        let seal = Arc::new(Seal::new(secret_key, "provider tokens")?);
        let tokens = Self(Arc::new(Shared {
            providers,
            seal,
            exchanges,
            revocations,
            readings,
            tasks,
        }));
        let revoking = tokens.revoking();
        for name in &revoking {
            tokens.0.exchanges.begin(name, Exchange::VARIANTS);
            tokens.0.revocations.begin(name, Revocation::VARIANTS);
        }
        tokens
            .0
            .readings
            .set(revoking.iter().map(|name| Summary::empty(name)).collect());
        Ok(tokens)
    }

    /// Returns the names of the providers whose tokens can be revoked, including providers that are
    /// switched off.
    fn revoking(&self) -> Vec<String> {
        let mut names = self.0.providers.names();
        let revokes = |name: &String| {
            let provider = self
                .0
                .providers
                .get(name)
                .map(|provider| &provider.settings);
            provider.is_some_and(|settings| {
                settings
                    .client_ids
                    .iter()
                    .any(|client| settings.revokes(client))
            })
        };
        names.retain(revokes);
        names
    }

    /// Begins to exchange and to revoke. Parked tokens get another attempt, since the settings may
    /// be right now.
    pub async fn open(&self, database: &Database) -> Result<(), Error> {
        let Shared {
            providers,
            seal,
            exchanges,
            revocations,
            readings,
            tasks,
        } = &*self.0;
        let revoking = self.revoking();
        while database
            .run(|_| store::unpark(database, &revoking, UNPARKED))
            .await?
            == UNPARKED.unsigned_abs()
        {}
        let known = readings.queues();
        let queues = database.run(|_| store::summaries(database, &known)).await?;
        for Summary {
            name,
            waiting,
            parked,
            ..
        } in queues.iter().filter(|one| !revoking.contains(&one.name))
        {
            tracing::warn!(
                provider = name,
                due = waiting + parked,
                "this provider's tokens are to be revoked when their identities are gone, but the settings do not allow it"
            );
        }
        let idle = queues.is_empty();
        readings.set(queues);
        for provider in revoking.iter().filter_map(|name| providers.get(name)) {
            let database = database.clone();
            let provider = provider.clone();
            let seal = seal.clone();
            let exchanges = exchanges.clone();
            let revocations = revocations.clone();
            let task = Task {
                database,
                provider,
                seal,
                exchanges,
                revocations,
                readings: readings.clone(),
            };
            tasks.spawn("provider tokens", move |stop| {
                keep_working(task.clone(), stop)
            });
        }
        if !idle {
            let database = database.clone();
            let readings = readings.clone();
            tasks.spawn("provider token readings", move |stop| {
                let database = database.clone();
                let readings = readings.clone();
                let read = |database, known: Vec<_>| async move {
                    store::summaries(&database, &known).await
                };
                let problem = "reading the queues of providers' tokens failed and will be retried";
                async move { readings.keep_reading(&database, stop, read, problem).await }
            });
        }
        if seal.is_changing() {
            let database = database.clone();
            let seal = seal.clone();
            tasks.spawn("provider token seals", move |stop| {
                let database = database.clone();
                let seal = seal.clone();
                async move {
                    if let Err(error) = seal_again(&database, &seal, stop).await {
                        tracing::warn!(%error, "not all tokens were sealed with the new secret_key; the next start goes on");
                    }
                }
            });
        }
        Ok(())
    }

    /// Stores the code that came with a verified identity, if its provider's tokens can be revoked.
    pub async fn keep(
        &self,
        database: &Database,
        provider: &config::Provider,
        claims: &VerifiedClaims,
        posted: &PostedCode,
    ) -> Result<(), Error> {
        // Google's native apps are `azp`, and ask for a code for the server that has the secret.
        let own = claims.client_id.as_str();
        let client_id = if claims.for_first && !provider.revokes(own) {
            &provider.client_ids[0]
        } else {
            own
        };
        if !provider.revokes(client_id) {
            return Ok(());
        }
        let owner = Owner {
            provider: provider.name.clone(),
            subject: claims.subject.clone(),
            client_id: client_id.to_owned(),
        };
        let id = id(&owner, posted);
        let PostedCode { code, redirect_uri } = posted;
        let contents = Contents::Code {
            code: code.expose().clone(),
            redirect_uri: redirect_uri.clone(),
        };
        let sealed = contents.seal(&self.0.seal, id);
        let sealed = sealed.map_err(|unopened| Error::unexpected(&unopened.to_string()))?;
        database
            .run(|_| store::keep_code(database, id, &owner, &sealed))
            .await
    }

    /// Returns the tokens that wait to be revoked, by provider, as this instance last counted them.
    pub fn waiting(&self) -> Vec<Summary> {
        self.0.readings.queues()
    }

    pub fn register(&self, registry: &mut Registry) {
        let Shared {
            exchanges,
            revocations,
            readings,
            ..
        } = &*self.0;
        let help = "Attempts to exchange an authorization code for a token that can be revoked, by outcome";
        registry.register("provider_code_exchanges", help, exchanges.family.clone());
        let help = "Attempts to revoke a provider's token, by outcome";
        registry.register("provider_revocations", help, revocations.family.clone());
        registry.register_collector(Box::new(Gauges {
            readings: readings.clone(),
            label: "provider",
            prefix: "provider_revocations",
            help: [
                "Provider tokens that wait to be revoked, up to 100,000",
                "Provider tokens that were not revoked for a month, up to 100,000",
                "Time since which the oldest provider token waits to be revoked",
            ],
        }));
    }

    /// Begins nothing new, and waits for the answers to what was begun, for a limited time.
    pub async fn close(&self) {
        self.0.tasks.close().await;
    }

    pub async fn readable(&self, database: &Database) -> Result<Readable, Error> {
        let mut found = Readable::default();
        let mut after = Uuid::nil();
        loop {
            let rows = database
                .run(|_| store::stored(database, after, BATCH))
                .await?;
            let Some(last) = rows.last() else {
                return Ok(found);
            };
            after = last.id;
            for row in &rows {
                *match self.0.seal.sealed_by(&row.id.to_string(), &row.sealed) {
                    SealedBy::Current => &mut found.current,
                    SealedBy::Previous => &mut found.previous,
                    SealedBy::Another => &mut found.another,
                } += 1;
            }
        }
    }
}

/// Returns the id of a posted code. It is the same if an app sends the request again, so that a
/// code, which is valid once, is exchanged once.
fn id(owner: &Owner, posted: &PostedCode) -> Uuid {
    let mut digest = Context::new(&SHA256);
    for part in [
        &owner.provider,
        &owner.subject,
        &owner.client_id,
        posted.code.expose(),
    ] {
        digest.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finish().as_ref()[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Seals all rows of the previous secret key with the current one. Several instances may do so at
/// once.
async fn seal_again(database: &Database, seal: &Seal, stop: Stop) -> Result<(), Error> {
    let mut after = Uuid::nil();
    let mut left = false;
    while !database.is_closed() && !*stop.borrow() {
        let rows = database
            .run(|_| store::stored(database, after, BATCH))
            .await?;
        let Some(last) = rows.last() else {
            if !left {
                return Ok(());
            }
            // Another round finds the rows that were locked.
            (after, left) = (Uuid::nil(), false);
            continue;
        };
        after = last.id;
        let again = rows
            .into_iter()
            .filter_map(|row| Some((seal.seal_again(&row.id.to_string(), &row.sealed)?, row)));
        let (new, old): (Vec<_>, Vec<Stored>) = again.unzip();
        if !old.is_empty() {
            left = true;
            database
                .run(|_| store::replace_seals(database, &old, &new))
                .await?;
        }
    }
    Ok(())
}
