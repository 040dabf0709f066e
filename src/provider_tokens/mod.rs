//! Tokens that providers want revoked when an account is deleted (Apple, technical note TN3194; App Store guideline
//! 5.1.1).
//!
//! An app posts the authorization code of its SDK with a sign-in. A task exchanges it for a token, which is kept encrypted.
//! A trigger on `identities` (`migrations`) makes the token due once the identity is gone, and the task revokes it: whatever
//! removed the identity never waits for the provider. A token whose identity was linked again meanwhile is kept. Of the
//! tokens that one client gets for one user the newest is kept: at Apple, revoking it ends the user's whole authorization.

mod readings;
mod safe;
mod schedule;
pub mod store;
mod task;

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::{Builder, Uuid};

use self::readings::Readings;
use self::safe::{Contents, Safe, SealedBy};
use self::store::{Owner, PgPool, Stored, Summary};
use self::task::Task;
use crate::config;
use crate::domain::claims::VerifiedClaims;
use crate::keys::seal::Unopened;
use crate::provider::Providers;
use crate::secret::{Secret, SecretKeys};
use crate::store::Error;
use crate::store::deadline::in_time;
use crate::store::error::retrying;

/// The rows that one statement reads or seals again.
const BATCH: i64 = 500;
/// The parked tokens to which one statement gives another attempt.
const UNPARKED: i64 = 5000;

/// The tokens of providers, and the tasks that exchange and revoke them.
#[derive(Debug, Clone)]
pub struct ProviderTokens(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    providers: Providers,
    safe: Arc<Safe>,
    readings: Arc<Readings>,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

/// An authorization code that an app has posted.
#[derive(Debug, Clone)]
pub struct PostedCode {
    pub code: Secret<String>,
    /// The redirect URI of the request that it was issued for, if that had one.
    pub redirect_uri: Option<String>,
}

/// The numbers of stored codes and tokens, by the secret key that decrypts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readable {
    /// Those of the current key.
    pub current: usize,
    /// Those of the previous one.
    pub previous: usize,
    /// Those of a key that is not in the settings.
    pub another: usize,
}

impl ProviderTokens {
    /// Prepares the work for the providers whose tokens can be revoked.
    ///
    /// # Errors
    /// Never in practice, as [`Seal::new`](crate::keys::seal::Seal::new).
    pub fn new(providers: &Providers, secret_key: &SecretKeys) -> Result<Self, Unopened> {
        let (safe, readings) = (Arc::new(Safe::new(secret_key)?), Arc::new(Readings::default()));
        let (stop, tasks) = (watch::Sender::new(false), Mutex::default());
        let tokens = Self(Arc::new(Shared { providers: providers.clone(), safe, readings, stop, tasks }));
        for name in tokens.revoking() {
            tokens.0.readings.begin(&name);
        }
        Ok(tokens)
    }

    /// Returns the names of the providers whose tokens can be revoked, also of those that are switched off.
    fn revoking(&self) -> Vec<String> {
        let mut names = self.0.providers.names();
        let revokes = |name: &String| {
            let provider = self.0.providers.get(name).map(|provider| &provider.settings);
            provider.is_some_and(|settings| settings.client_ids.iter().any(|client| settings.revokes(client)))
        };
        names.retain(revokes);
        names
    }

    /// Begins to exchange and to revoke. Parked tokens get another attempt, since the settings may be right now.
    pub async fn open(&self, pool: &PgPool) -> Result<(), Error> {
        let revoking = self.revoking();
        while in_time(async { retrying!(store::unpark(pool, &revoking, UNPARKED)) }).await?
            == UNPARKED.unsigned_abs()
        {}
        let summaries = in_time(store::summaries(pool)).await?;
        let stored = in_time(store::providers(pool)).await?;
        for provider in stored.iter().filter(|provider| !revoking.contains(provider)) {
            let due = summaries.iter().find(|summary| summary.provider == *provider);
            let due = due.map_or(0, |summary| summary.waiting + summary.parked);
            tracing::warn!(
                provider,
                due,
                "this provider's tokens are to be revoked when their identities are gone, but the settings do not allow it"
            );
        }
        let idle = revoking.is_empty() && stored.is_empty();
        self.0.readings.read(summaries);
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for provider in revoking.iter().filter_map(|name| self.0.providers.get(name)) {
            let (provider, safe, readings) = (provider.clone(), self.0.safe.clone(), self.0.readings.clone());
            let task = Task { pool: pool.clone(), provider, safe, readings };
            tasks.spawn(task.keep_working(self.0.stop.subscribe()));
        }
        if !idle {
            let (pool, readings, stop) = (pool.clone(), self.0.readings.clone(), self.0.stop.subscribe());
            tasks.spawn(async move { readings.keep_reading(&pool, stop).await });
        }
        if self.0.safe.is_changing() {
            let (pool, safe, stop) = (pool.clone(), self.0.safe.clone(), self.0.stop.subscribe());
            tasks.spawn(async move {
                if let Err(error) = seal_again(&pool, &safe, stop).await {
                    tracing::warn!(%error, "not all tokens were sealed with the new secret_key; the next start goes on");
                }
            });
        }
        Ok(())
    }

    /// Stores the code that came with a verified identity, if its provider's tokens can be revoked.
    pub async fn keep(
        &self,
        pool: &PgPool,
        provider: &config::Provider,
        claims: &VerifiedClaims,
        posted: &PostedCode,
    ) -> Result<(), Error> {
        // Google's native apps are `azp`, and ask for a code for the server that has the secret.
        let own = claims.client_id.as_str();
        let client_id =
            if claims.for_first && !provider.revokes(own) { &provider.client_ids[0] } else { own };
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
        let contents = Contents::Code { code: code.expose().clone(), redirect_uri: redirect_uri.clone() };
        let sealed = self.0.safe.seal(id, &contents);
        let sealed = sealed.map_err(|unopened| Error::unexpected(&unopened.to_string()))?;
        retrying!(store::keep_code(pool, id, &owner, &sealed))
    }

    /// Returns what waits to be revoked, as this instance last read it.
    #[must_use]
    pub fn waiting(&self) -> Vec<Summary> {
        self.0.readings.waiting()
    }

    /// Begins nothing new, and waits for the answers to what was begun, for a limited time.
    pub async fn close(&self) {
        self.0.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }

    /// Counts the stored codes and tokens by the secret key that decrypts them. Changes nothing.
    pub async fn readable(&self, pool: &PgPool) -> Result<Readable, Error> {
        let (mut found, mut after) = (Readable::default(), Uuid::nil());
        loop {
            let rows = in_time(store::stored(pool, after, BATCH)).await?;
            let Some(last) = rows.last() else { return Ok(found) };
            after = last.id;
            for row in &rows {
                *match self.0.safe.sealed_by(row.id, &row.sealed) {
                    SealedBy::Current => &mut found.current,
                    SealedBy::Previous => &mut found.previous,
                    SealedBy::Another => &mut found.another,
                } += 1;
            }
        }
    }
}

/// Returns the id of a posted code. It is the same if an app sends the request again, so that a code, which is valid once,
/// is exchanged once.
fn id(owner: &Owner, posted: &PostedCode) -> Uuid {
    let mut digest = Context::new(&SHA256);
    for part in [&owner.provider, &owner.subject, &owner.client_id, posted.code.expose()] {
        digest.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finish().as_ref()[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Seals all rows of the previous secret key with the current one. Several instances may do so at once.
async fn seal_again(pool: &PgPool, safe: &Safe, stop: watch::Receiver<bool>) -> Result<(), Error> {
    let (mut after, mut left) = (Uuid::nil(), false);
    while !pool.is_closed() && !*stop.borrow() {
        let rows = in_time(store::stored(pool, after, BATCH)).await?;
        let Some(last) = rows.last() else {
            if !left {
                return Ok(());
            }
            // Another round finds what somebody was changing.
            (after, left) = (Uuid::nil(), false);
            continue;
        };
        after = last.id;
        let again = rows.into_iter().filter_map(|row| Some((safe.seal_again(row.id, &row.sealed)?, row)));
        let (new, old): (Vec<_>, Vec<Stored>) = again.unzip();
        if !old.is_empty() {
            left = true;
            in_time(async { retrying!(store::replace_seals(pool, &old, &new)) }).await?;
        }
    }
    Ok(())
}
