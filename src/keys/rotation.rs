//! Rotation of signing keys, on a schedule or by an operator's command. The database decides
//! between instances, and only its clock counts.

use time::Duration;

use super::life::KEEP;
use super::seal::{Seal, SealedBy};
use super::signing_key::{Error, SigningKey};
use super::store::{self, StoredKey, StoredKeys};
use crate::config::Keys;
use crate::database::{Attempt, Database};
use crate::domain::Author;
use crate::secret::SecretKeys;

/// Purpose under which the private keys are sealed.
const PURPOSE: &str = "signing keys";

/// The stored keys, and the rules by which they change.
#[derive(Debug)]
pub struct Rotation {
    database: Database,
    seal: Seal,
    periods: Keys,
}

impl Rotation {
    pub fn new(database: Database, secret_key: &SecretKeys, periods: Keys) -> Result<Self, Error> {
        Ok(Self {
            database,
            seal: Seal::new(secret_key, PURPOSE)?,
            periods,
        })
    }

    pub fn open(&self, stored: &StoredKey) -> Result<SigningKey, Error> {
        SigningKey::open(&self.seal, stored)
    }

    /// Returns the `secret_key` that opens a stored key.
    pub fn sealed_by(&self, stored: &StoredKey) -> SealedBy {
        self.seal.sealed_by(&stored.kid, &stored.sealed_private_key)
    }

    /// Seals the keys of the previous `secret_key` with the current one. Several instances may do
    /// so at once.
    pub async fn seal_again(&self) -> Result<(), Error> {
        if !self.seal.is_changing() {
            return Ok(());
        }
        for key in self
            .stored()
            .await?
            .map(|stored| stored.keys)
            .unwrap_or_default()
        {
            if let Some(sealed) = self.seal.seal_again(&key.kid, &key.sealed_private_key) {
                let replace = || store::replace_seal(&self.database, &key, &sealed);
                self.database.run(|_| replace()).await?;
                tracing::info!(
                    kid = key.kid,
                    "sealed a signing key with the new secret_key"
                );
            }
        }
        Ok(())
    }

    /// Returns the stored keys, or `None` before the first start.
    pub async fn stored(&self) -> Result<Option<StoredKeys>, Error> {
        Ok(self.database.run(|_| store::all(&self.database)).await?)
    }

    /// Makes the changes that are due, and returns the keys: creates the first key, announces the
    /// next one, and deletes keys that no token needs. All instances call it regularly.
    pub async fn tend(&self) -> Result<StoredKeys, Error> {
        let stored = match self.stored().await? {
            Some(stored) if stored.keys.iter().any(|key| key.life.retired_at.is_none()) => stored,
            _ => {
                let key = SigningKey::generate(&self.seal)?;
                let insert = || store::insert_first(&self.database, &key);
                self.database.run(|_| insert()).await?;
                // Another instance may have come first: the stored key counts.
                self.stored().await?.ok_or(Error::Backend)?
            }
        };
        let stopped = |key: &StoredKey| key.life.retired_at.or(key.life.succeeded_at);
        let expired = |key: &StoredKey| {
            stopped(key).is_some_and(|at| at + Duration::seconds(KEEP.into()) <= stored.now)
        };
        let age = self.periods.rotate_every - self.periods.announce;
        let newest = stored.keys.last().ok_or(Error::Backend)?;
        let due = newest.life.signs_from + Duration::seconds(age.into()) <= stored.now;
        if !due && !stored.keys.iter().any(expired) {
            return Ok(stored);
        }
        self.database.run(|_| store::prune(&self.database)).await?;
        if due {
            self.announce(&stored, age, None).await?;
        }
        self.stored().await?.ok_or(Error::Backend)
    }

    /// Announces the next key, as an operator asks. Returns `false` if one is already announced.
    pub async fn rotate(&self) -> Result<bool, Error> {
        let stored = self.tend().await?;
        self.announce(&stored, 0, Some(Author::COMMAND_LINE)).await
    }

    /// Replaces all keys, as an operator asks in an emergency: a new key signs at once, and all
    /// others are retired, so their tokens are refused. With `any_secret`, it also retires keys of
    /// another `secret_key`; without it, such keys are an error.
    pub async fn replace_all(&self, any_secret: bool) -> Result<(), Error> {
        if let (false, Some(stored)) = (any_secret, self.stored().await?) {
            self.check_secret(&stored)?;
        }
        let key = SigningKey::generate(&self.seal)?;
        Ok(self
            .database
            .run(|_| store::replace_all(&self.database, &key, Author::COMMAND_LINE))
            .await?)
    }

    async fn announce(
        &self,
        stored: &StoredKeys,
        age: u32,
        by: Option<Author<'_>>,
    ) -> Result<bool, Error> {
        self.check_secret(stored)?;
        let key = SigningKey::generate(&self.seal)?;
        let announce = self.periods.announce;
        let key = &key;
        let insert = |attempt: Attempt| async move {
            let done = store::insert_next(&self.database, key, announce, age, by).await?;
            Ok(done || attempt.perhaps_done)
        };
        Ok(self.database.run(insert).await?)
    }

    /// Checks that the published keys can be opened, and returns their number, and how many of them
    /// only the previous `secret_key` opens. Changes nothing.
    pub async fn readable(&self) -> Result<(usize, usize), Error> {
        let Some(stored) = self.stored().await? else {
            return Ok((0, 0));
        };
        self.check_secret(&stored)?;
        let by_previous = stored
            .published()
            .filter(|key| self.sealed_by(key) == SealedBy::Previous);
        Ok((stored.published().count(), by_previous.count()))
    }

    /// Checks that the published keys can be opened. A key of another secret beside them would stop
    /// every start.
    fn check_secret(&self, stored: &StoredKeys) -> Result<(), Error> {
        stored
            .published()
            .try_for_each(|key| self.open(key).map(drop))
    }
}
