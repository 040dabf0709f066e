//! A document that a provider publishes and that is kept for a while: its keys, its metadata.
//!
//! Whoever needs it while it is fresh gets it at once. Shortly before it expires one of them has it
//! fetched anew without waiting; once it has expired, one fetches and all others wait for that one.
//! While the provider fails, the last good document serves on for a bounded time, and a document that
//! cannot be used never takes its place. Time is a parameter throughout.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reqwest::{Client, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::answer::{self, DEADLINE, Unavailable};
use super::attempt::{self, Failure};
use super::{Error, freshness};
use crate::domain::json::Object;

/// How long an expired document serves on while its provider fails, in seconds: long enough to be
/// noticed and repaired.
const STALE: i64 = 4 * 60 * 60;
/// Shortest time between two attempts after a failure, in seconds.
const AFTER_FAILURE: i64 = 5;
/// Shortest time between two attempts that are made for unknown key ids, in seconds: anybody can make one up.
const BETWEEN_RENEWALS: i64 = 10;

/// What a document is read with; the error is a class for the log, and the setting to look at.
pub(super) type Read<T> = Box<dyn Fn(&Object) -> Result<T, Unavailable> + Send + Sync>;

/// A document of one provider.
pub(super) struct Document<T> {
    client: Client,
    provider: String,
    /// The setting that names its address.
    setting: &'static str,
    read: Read<T>,
    state: Mutex<State<T>>,
    /// Held by the one who fetches.
    turn: Arc<tokio::sync::Mutex<()>>,
}

struct State<T> {
    held: Option<Arc<Held<T>>>,
    /// Number of fetches so far, by which those who waited for one see that it is over.
    fetches: u64,
    fetched_at: Option<i64>,
    /// When it was last fetched because something was not in it.
    renewed_at: Option<i64>,
    /// Why the latest fetch failed, if it did.
    failure: Option<Unavailable>,
}

/// A good document.
pub(super) struct Held<T> {
    /// What it says.
    pub value: T,
    url: Url,
    refresh_at: i64,
    expires_at: i64,
}

impl<T: Send + Sync + 'static> Document<T> {
    pub fn new(client: Client, provider: &str, setting: &'static str, read: Read<T>) -> Arc<Self> {
        let state = State { held: None, fetches: 0, fetched_at: None, renewed_at: None, failure: None };
        let state = Mutex::new(state);
        Arc::new(Self { client, provider: provider.to_owned(), setting, read, state, turn: Arc::default() })
    }

    /// The document at that address.
    pub async fn get(self: &Arc<Self>, url: &Url, now: i64) -> Result<Arc<Held<T>>, Unavailable> {
        let fetches = {
            let state = self.state();
            match state.held_of(url) {
                Some(held) if now < held.refresh_at => return Ok(held),
                // Its provider is known to fail: nobody has to wait to learn that again.
                Some(held) if now < held.expires_at || state.failure.is_some() && held.serves(now) => {
                    let fetches = state.fetches;
                    drop(state);
                    self.refresh_aside(url, now, fetches);
                    return Ok(held);
                }
                _ if state.failing(now) => return Err(state.why()),
                _ => state.fetches,
            }
        };
        self.fetch_once(url, now, fetches, false).await;
        let state = self.state();
        state.held_of(url).filter(|held| held.serves(now)).ok_or_else(|| state.why())
    }

    /// The document, fetched anew because what is needed is not in `than`, and whether that fetch began after this
    /// call: only then it is known that there is no such thing.
    ///
    /// # Errors
    /// The fetch failed, or it is too early for one: what is needed may have been published meanwhile.
    pub async fn renew(
        self: &Arc<Self>,
        url: &Url,
        now: i64,
        than: &Arc<Held<T>>,
    ) -> Result<(Arc<Held<T>>, bool), Unavailable> {
        let fetches = {
            let state = self.state();
            match (state.held_of(url), &state.failure) {
                (Some(held), _) if !Arc::ptr_eq(&held, than) => return Ok((held, false)),
                (_, Some(failure)) if since(state.fetched_at, now) < BETWEEN_RENEWALS => {
                    return Err(failure.clone());
                }
                _ => {}
            }
            let since = since(state.renewed_at, now);
            if since < BETWEEN_RENEWALS {
                return Err(unknown(BETWEEN_RENEWALS - since));
            }
            state.fetches
        };
        let own = self.fetch_once(url, now, fetches, true).await;
        let state = self.state();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => state.held_of(url).map(|held| (held, own)).ok_or_else(|| state.why()),
        }
    }

    /// Fetches unless somebody else does, who is then waited for. Answers whether it was a fetch of one's own.
    async fn fetch_once(self: &Arc<Self>, url: &Url, now: i64, seen: u64, renews: bool) -> bool {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if self.state().fetches != seen {
            return false;
        }
        let (document, url) = (Arc::clone(self), url.clone());
        // A task of its own: a caller who gives up takes nothing away from those who wait.
        let fetch = tokio::spawn(async move {
            document.fetch(&url, now, renews).await;
            drop(turn);
        });
        // A panic is in the log already, and then there is no new document.
        let _ = fetch.await;
        true
    }

    /// Fetches while others go on, unless somebody does so already or has just failed.
    fn refresh_aside(self: &Arc<Self>, url: &Url, now: i64, seen: u64) {
        let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() else { return };
        {
            let state = self.state();
            if state.fetches != seen || state.failing(now) {
                return;
            }
        }
        let (document, url) = (Arc::clone(self), url.clone());
        tokio::spawn(async move {
            document.fetch(&url, now, false).await;
            drop(turn);
        });
    }

    async fn fetch(&self, url: &Url, now: i64, renews: bool) {
        let started = Instant::now();
        let fetched = attempt::twice(|| self.attempt(url, now));
        let fetched = timeout(DEADLINE, fetched).await.unwrap_or(Err(Unavailable::new("timeout").into()));
        let mut state = self.state();
        state.fetches += 1;
        let took = i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX);
        state.fetched_at = Some(now.saturating_add(took));
        if renews {
            state.renewed_at = state.fetched_at;
        }
        match fetched {
            Ok(held) => {
                state.held = Some(Arc::new(held));
                state.failure = None;
            }
            Err(Error::Unavailable(unavailable)) => state.failure = Some(unavailable),
            Err(Error::Refused(_)) => state.failure = Some(Unavailable::new("refused")),
        }
        if let Some(failure) = &state.failure {
            let (provider, setting) = (&self.provider, self.setting);
            tracing::warn!(provider, setting, host = url.host_str(), cause = %failure, "provider document");
        }
    }

    async fn attempt(&self, url: &Url, now: i64) -> Result<Held<T>, Failure> {
        let response = attempt::send(self.client.get(url.clone())).await?;
        if response.status() != StatusCode::OK {
            return Err(attempt::unusable(&response, self.setting));
        }
        let lifetime = freshness::lifetime(response.headers(), now);
        // RFC 7517 §8.5 has a media type of its own for keys.
        let object = answer::object(response, &["application/json", "application/jwk-set+json"]).await?;
        let value = (self.read)(&object)?;
        let expires_at = now.saturating_add(lifetime);
        Ok(Held { value, url: url.clone(), refresh_at: expires_at.saturating_sub(lifetime / 5), expires_at })
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is needed is not in the document, and may be in the next one.
pub(super) fn unknown(seconds: i64) -> Unavailable {
    // Anybody can make one up.
    Unavailable::after("unknown_key", u32::try_from(seconds).unwrap_or(1)).by_token()
}

/// Seconds between the two, whichever way the clock was set meanwhile.
fn since(at: Option<i64>, now: i64) -> i64 {
    at.map_or(i64::MAX, |at| now.saturating_sub(at).saturating_abs())
}

impl<T> State<T> {
    /// The last good document, unless it came from somewhere else.
    fn held_of(&self, url: &Url) -> Option<Arc<Held<T>>> {
        self.held.as_ref().filter(|held| held.url == *url).cloned()
    }

    /// Whether the latest fetch failed, a moment ago.
    fn failing(&self, now: i64) -> bool {
        self.failure.is_some() && since(self.fetched_at, now) < AFTER_FAILURE
    }

    fn why(&self) -> Unavailable {
        self.failure.clone().unwrap_or(Unavailable::new("no_document"))
    }
}

impl<T> Held<T> {
    /// Whether it may be used while its provider fails.
    const fn serves(&self, now: i64) -> bool {
        now < self.expires_at.saturating_add(STALE)
    }
}
