//! The published keys as of one load, and the times at which they sign. They are never changed,
//! only replaced.

use std::sync::Arc;

use time::{Duration, OffsetDateTime};

use crate::keys::life::KeyLife;
use crate::keys::rotation::Rotation;
use crate::keys::signing_key::{Error, Jwk, SigningKey};
use crate::keys::store::{StoredKey, StoredKeys};

#[derive(Debug)]
pub(super) struct Keys {
    /// The published keys, the oldest first; never empty.
    entries: Vec<Entry>,
    /// The database's time at the load, and this machine's.
    loaded: OffsetDateTime,
    loaded_here: i64,
}

#[derive(Debug)]
struct Entry {
    key: Arc<SigningKey>,
    life: KeyLife,
}

impl Keys {
    pub fn open(
        rotation: &Rotation,
        stored: &StoredKeys,
        now_here: i64,
        known: Option<&Self>,
    ) -> Result<Self, Error> {
        let open = |row: &StoredKey| {
            let known =
                known.and_then(|known| known.entries.iter().find(|entry| entry.key.kid == row.kid));
            let key = match known {
                Some(entry) => entry.key.clone(),
                None => Arc::new(rotation.open(row)?),
            };
            Ok(Entry {
                key,
                life: row.life,
            })
        };
        let entries = stored
            .published()
            .map(open)
            .collect::<Result<Vec<_>, Error>>()?;
        if entries.is_empty() {
            return Err(Error::Backend);
        }
        Ok(Self {
            entries,
            loaded: stored.now,
            loaded_here: now_here,
        })
    }

    /// Converts a time of this machine's clock to the database's: two clocks that disagree agree on
    /// how long ago the keys were loaded.
    fn database_time(&self, now_here: i64) -> OffsetDateTime {
        self.loaded
            .saturating_add(Duration::seconds(now_here.saturating_sub(self.loaded_here)))
    }

    pub fn signing(&self, now_here: i64) -> Arc<SigningKey> {
        let now = self.database_time(now_here);
        let newest = self
            .entries
            .iter()
            .rfind(|entry| entry.life.signs_from <= now);
        newest.unwrap_or(&self.entries[0]).key.clone()
    }

    pub fn find(&self, kid: &str, now_here: i64) -> Option<Arc<SigningKey>> {
        let now = self.database_time(now_here);
        let entry = self.entries.iter().find(|entry| entry.key.kid == kid)?;
        entry
            .life
            .state(now)
            .is_published()
            .then(|| entry.key.clone())
    }

    pub fn published(&self) -> Vec<Jwk> {
        self.entries
            .iter()
            .map(|entry| entry.key.jwk.clone())
            .collect()
    }

    pub fn ahead_of_database(&self) -> i64 {
        self.loaded_here
            .saturating_sub(self.loaded.unix_timestamp())
    }

    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.loaded >= other.loaded
    }
}
