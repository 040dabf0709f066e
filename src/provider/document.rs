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
/// Shortest time between two attempts that only a key id made up by somebody asks for, in seconds.
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
        let state = Mutex::new(State { held: None, fetches: 0, fetched_at: None, failure: None });
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
        self.fetch_once(url, now, fetches).await;
        let state = self.state();
        state.held_of(url).filter(|held| held.serves(now)).ok_or_else(|| state.why())
    }

    /// The document, fetched anew because what is needed is not in `than`; the same one when that
    /// was done a moment ago.
    pub async fn renew(
        self: &Arc<Self>,
        url: &Url,
        now: i64,
        than: &Arc<Held<T>>,
    ) -> Result<Arc<Held<T>>, Unavailable> {
        let fetches = {
            let state = self.state();
            match state.held_of(url) {
                Some(held) if !Arc::ptr_eq(&held, than) => return Ok(held),
                _ if state.tried_within(BETWEEN_RENEWALS, now) => {
                    // After a failure nobody knows which keys there are.
                    return state.failure.clone().map_or_else(|| Ok(Arc::clone(than)), Err);
                }
                _ => state.fetches,
            }
        };
        self.fetch_once(url, now, fetches).await;
        let state = self.state();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => state.held_of(url).ok_or_else(|| state.why()),
        }
    }

    /// Fetches unless somebody else does, who is then waited for.
    async fn fetch_once(self: &Arc<Self>, url: &Url, now: i64, seen: u64) {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if self.state().fetches != seen {
            return;
        }
        let (document, url) = (Arc::clone(self), url.clone());
        // A task of its own: a caller who gives up takes nothing away from those who wait.
        let fetch = tokio::spawn(async move {
            document.fetch(&url, now).await;
            drop(turn);
        });
        // A panic is in the log already, and then there is no new document.
        let _ = fetch.await;
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
            document.fetch(&url, now).await;
            drop(turn);
        });
    }

    async fn fetch(&self, url: &Url, now: i64) {
        let started = Instant::now();
        let fetched = attempt::twice(|| self.attempt(url, now));
        let fetched = timeout(DEADLINE, fetched).await.unwrap_or(Err(Unavailable::new("timeout").into()));
        let mut state = self.state();
        state.fetches += 1;
        let took = i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX);
        state.fetched_at = Some(now.saturating_add(took));
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

impl<T> State<T> {
    /// The last good document, unless it came from somewhere else.
    fn held_of(&self, url: &Url) -> Option<Arc<Held<T>>> {
        self.held.as_ref().filter(|held| held.url == *url).cloned()
    }

    /// Whether the latest fetch failed, a moment ago.
    fn failing(&self, now: i64) -> bool {
        self.failure.is_some() && self.tried_within(AFTER_FAILURE, now)
    }

    fn tried_within(&self, seconds: i64, now: i64) -> bool {
        self.fetched_at.is_some_and(|at| now.saturating_sub(at).saturating_abs() < seconds)
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
