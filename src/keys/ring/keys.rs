//! The published keys as of one load, and the times at which they sign. They are never changed, only replaced.

use std::sync::Arc;

use time::{Duration, OffsetDateTime};

use crate::keys::life::KeyLife;
use crate::keys::rotation::Rotation;
use crate::keys::signing_key::{Error, Jwk, SigningKey};
use crate::keys::store::StoredKeys;

/// The published keys, the oldest first; never empty.
#[derive(Debug)]
pub(super) struct Keys {
    first: Entry,
    others: Vec<Entry>,
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
        let mut entries = Vec::with_capacity(stored.keys.len());
        for row in stored.published() {
            let known = known.and_then(|known| known.entries().find(|entry| entry.key.kid == row.kid));
            let key = match known {
                Some(entry) => entry.key.clone(),
                None => Arc::new(rotation.open(row)?),
            };
            entries.push(Entry { key, life: row.life });
        }
        let mut entries = entries.into_iter();
        let first = entries.next().ok_or(Error::Backend)?;
        Ok(Self { first, others: entries.collect(), loaded: stored.now, loaded_here: now_here })
    }

    fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Converts a time of this machine's clock to the database's: two clocks that disagree agree on how long ago the
    /// keys were loaded.
    fn database_time(&self, now_here: i64) -> OffsetDateTime {
        self.loaded.saturating_add(Duration::seconds(now_here.saturating_sub(self.loaded_here)))
    }

    pub fn signing(&self, now_here: i64) -> Arc<SigningKey> {
        let now = self.database_time(now_here);
        let newest = self.entries().rfind(|entry| entry.life.signs_from <= now);
        newest.unwrap_or(&self.first).key.clone()
    }

    pub fn find(&self, kid: &str, now_here: i64) -> Option<Arc<SigningKey>> {
        let now = self.database_time(now_here);
        let entry = self.entries().find(|entry| entry.key.kid == kid)?;
        entry.life.state(now).is_published().then(|| entry.key.clone())
    }

    pub fn published(&self) -> Vec<Jwk> {
        self.entries().map(|entry| entry.key.jwk.clone()).collect()
    }

    pub fn ahead_of_database(&self) -> i64 {
        self.loaded_here.saturating_sub(self.loaded.unix_timestamp())
    }

    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.loaded >= other.loaded
    }
}
