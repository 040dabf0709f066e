//! The signing keys in memory, for issuing and verifying. A token with a known key needs no I/O. A
//! task reloads the keys from the database, so that all instances agree.

mod keys;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use self::keys::Keys;
use super::rotation::Rotation;
use super::signing_key::{Error, Jwk, SigningKey};
use crate::database::Database;
use crate::secret::SecretKeys;
use crate::{background, clock, config};

/// Minimum time between two reloads that unknown key ids request, since anyone can send one.
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// Time that a token with an unknown key id waits for a reload.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct KeyRing(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rotation: Rotation,
    /// `None` before the first load.
    keys: RwLock<Option<Arc<Keys>>>,
    /// Number of reloads, failed ones included.
    reloads: AtomicU64,
    /// The time at which an unknown key id last requested a reload. Other requests wait for its
    /// lock until that reload has ended.
    asked_at: Arc<Mutex<Option<Instant>>>,
    failures: AtomicU64,
}

impl KeyRing {
    pub fn new(
        database: Database,
        secret_key: &SecretKeys,
        periods: config::Keys,
    ) -> Result<Self, Error> {
        let shared = Shared {
            rotation: Rotation::new(database, secret_key, periods)?,
            keys: RwLock::new(None),
            reloads: AtomicU64::new(0),
            asked_at: Arc::default(),
            failures: AtomicU64::new(0),
        };
        Ok(Self(Arc::new(shared)))
    }

    /// Loads the keys, and creates the first key if no key exists. Keys of the previous
    /// `secret_key` are sealed with the current one. Starts the task that reloads them; it ends
    /// with the last clone of the ring.
    pub async fn open(&self) -> Result<(), Error> {
        self.0.rotation.seal_again().await?;
        self.load().await?;
        let ring = Arc::downgrade(&self.0);
        background::spawn("signing keys", move || keep_current(ring.clone()));
        Ok(())
    }

    /// Returns the key that signs at `now` by this machine's clock, or `None` before the ring is
    /// open.
    pub fn signing(&self, now: i64) -> Option<Arc<SigningKey>> {
        Some(self.current()?.signing(now))
    }

    pub fn find(&self, kid: &str, now: i64) -> Option<Arc<SigningKey>> {
        self.current()?.find(kid, now)
    }

    /// Returns the published key of that id, after a reload if it is unknown: another instance may
    /// have created it in an emergency. The rate of such reloads is limited.
    pub async fn find_or_reload(&self, kid: &str, now: i64) -> Option<Arc<SigningKey>> {
        let found = self.find(kid, now);
        if found.is_some() || !is_thumbprint(kid) {
            return found;
        }
        let reloaded = async {
            let mut asked_at = self.0.asked_at.clone().lock_owned().await;
            if asked_at.is_none_or(|at| at.elapsed() >= ASKED_EVERY) {
                *asked_at = Some(Instant::now());
                let ring = self.clone();
                // It is a task of its own, so that the timeout neither cuts the reload off nor lets
                // another one begin.
                let reload = async move {
                    ring.reload_or_warn().await;
                    drop(asked_at);
                };
                let _ = tokio::spawn(reload).await;
            }
        };
        // After a timeout the id stays unknown.
        let _ = timeout(TIMEOUT, reloaded).await;
        self.find(kid, now)
    }

    /// Returns the published keys, the oldest first.
    pub fn published(&self) -> Vec<Jwk> {
        self.current()
            .map(|keys| keys.published())
            .unwrap_or_default()
    }

    pub fn rotation(&self) -> &Rotation {
        &self.0.rotation
    }

    /// Returns the number of reloads since the start.
    pub fn reloads(&self) -> u64 {
        self.0.reloads.load(Ordering::Relaxed)
    }

    /// Returns the number of failed reloads since the last good one.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Returns the seconds by which this clock was ahead of the database's at the last load,
    /// latency included.
    pub fn ahead_of_database(&self) -> i64 {
        self.current().map_or(0, |keys| keys.ahead_of_database())
    }

    fn current(&self) -> Option<Arc<Keys>> {
        self.0
            .keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn reload_or_warn(&self) {
        if let Err(error) = self.reload().await {
            tracing::warn!(error = %error, "reloading the signing keys failed; the loaded ones stay in use");
        }
    }

    /// Makes the changes that are due in the database, and loads the keys.
    /// After an error, the keys in memory stay as they were.
    pub async fn reload(&self) -> Result<(), Error> {
        let result = self.load().await;
        match &result {
            Ok(()) => self.0.failures.store(0, Ordering::Relaxed),
            Err(_) => drop(self.0.failures.fetch_add(1, Ordering::Relaxed)),
        }
        self.0.reloads.fetch_add(1, Ordering::Relaxed);
        result
    }

    async fn load(&self) -> Result<(), Error> {
        let stored = self.0.rotation.tend().await?;
        let known = self.current();
        let keys = Arc::new(Keys::open(
            &self.0.rotation,
            &stored,
            clock::now(),
            known.as_deref(),
        )?);
        let mut current = self.0.keys.write().unwrap_or_else(PoisonError::into_inner);
        // Of two concurrent reloads, the later result counts.
        if current
            .as_ref()
            .is_none_or(|current| keys.is_newer_than(current))
        {
            *current = Some(keys);
        }
        Ok(())
    }
}

async fn keep_current(ring: Weak<Shared>) {
    loop {
        sleep(Duration::from_secs(config::Keys::RELOAD_EVERY.into())).await;
        let Some(shared) = ring.upgrade() else { return };
        KeyRing(shared).reload_or_warn().await;
    }
}

/// Returns `true` if a key id has our form: 32 bytes in base64url.
fn is_thumbprint(kid: &str) -> bool {
    kid.len() == 43
        && kid
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
