//! A published document of a provider, such as its keys or its metadata, and its cache.
//!
//! A fresh document is returned at once. Shortly before it expires, one call starts a refresh in
//! the background. Once it has expired, one caller fetches it and all others wait for that fetch.
//! While the provider fails, the last good document is used for a bounded time. A document that
//! cannot be used never replaces it. Time is a parameter throughout.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode};
use tokio::time::timeout;
use url::Url;

use super::answer::{self, Class, DEADLINE, Unavailable, late};
use super::attempt::{self, Failure};
use super::freshness;
use crate::domain::jwk::KeySet;
use crate::domain::jws::{self, Jws};
use crate::domain::metadata::Unfit;
use crate::domain::{Issuers, Object};

/// Seconds for which an expired document is used while its provider fails: long enough to notice
/// and repair it.
const STALE: i64 = 4 * 60 * 60;
/// The shortest time between two attempts after a failure, in seconds.
const AFTER_FAILURE: i64 = 5;
/// The shortest time between two attempts for unknown key ids, in seconds: any client can make up a
/// key id.
const BETWEEN_RENEWALS: i64 = 10;

/// The parser of a document. Its error has a class for the log and the setting to check.
pub(super) type Read<T> = Box<dyn Fn(&Object) -> Result<T, Unavailable> + Send + Sync>;

pub(super) struct Document<T> {
    client: Client,
    provider: String,
    pub setting: &'static str,
    read: Read<T>,
    state: Mutex<State<T>>,
    /// Held by the task that fetches.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

struct State<T> {
    held: Option<Arc<Held<T>>>,
    /// The number of fetches so far. It shows a waiting caller that a fetch has ended.
    fetches: u64,
    fetched_at: Option<i64>,
    /// The time of the latest fetch that was made because something was missing in the document.
    renewed_at: Option<i64>,
    failure: Option<Unavailable>,
}

/// A good document.
pub(super) struct Held<T> {
    pub value: T,
    url: Url,
    refresh_at: i64,
    expires_at: i64,
}

impl<T: Send + Sync + 'static> Document<T> {
    pub fn new(client: Client, provider: &str, setting: &'static str, read: Read<T>) -> Arc<Self> {
        let state = State {
            held: None,
            fetches: 0,
            fetched_at: None,
            renewed_at: None,
            failure: None,
        };
        let state = Mutex::new(state);
        Arc::new(Self {
            client,
            provider: provider.to_owned(),
            setting,
            read,
            state,
            fetching: Arc::default(),
        })
    }

    /// Returns the document at this URL, from the cache or from the provider.
    pub async fn get(self: &Arc<Self>, url: &Url, now: i64) -> Result<Arc<Held<T>>, Unavailable> {
        let fetches = {
            let state = self.state();
            match state.held_for(url) {
                Some(held) if now < held.refresh_at => return Ok(held),
                // The provider is known to fail, so callers do not wait for another failure.
                Some(held)
                    if now < held.expires_at || state.failure.is_some() && held.is_usable(now) =>
                {
                    let fetches = state.fetches;
                    drop(state);
                    self.refresh_in_background(url, now, fetches);
                    return Ok(held);
                }
                _ if state.failing(now) => return Err(state.last_failure()),
                _ => state.fetches,
            }
        };
        self.fetch_once(url, now, fetches, false).await;
        let state = self.state();
        state
            .held_for(url)
            .filter(|held| held.is_usable(now))
            .ok_or_else(|| state.last_failure())
    }

    /// Fetches the document again because something is missing in `old`. Returns true with it if
    /// that fetch began after this call: only then is it known that the missing item does not
    /// exist. It fails as well if it is too early for a fetch: the missing item may have been
    /// published meanwhile.
    pub async fn renew(
        self: &Arc<Self>,
        url: &Url,
        now: i64,
        old: &Arc<Held<T>>,
    ) -> Result<(Arc<Held<T>>, bool), Unavailable> {
        let fetches = {
            let state = self.state();
            match (state.held_for(url), &state.failure) {
                (Some(held), _) if !Arc::ptr_eq(&held, old) => return Ok((held, false)),
                (_, Some(failure)) if since(state.fetched_at, now) < BETWEEN_RENEWALS => {
                    return Err(failure.clone());
                }
                _ => {}
            }
            let since = since(state.renewed_at, now);
            if since < BETWEEN_RENEWALS {
                return Err(unknown_key(BETWEEN_RENEWALS - since));
            }
            state.fetches
        };
        let own = self.fetch_once(url, now, fetches, true).await;
        let state = self.state();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => state
                .held_for(url)
                .map(|held| (held, own))
                .ok_or_else(|| state.last_failure()),
        }
    }

    /// Fetches, or waits for the fetch of another caller. Returns true if the fetch was this
    /// caller's own.
    async fn fetch_once(self: &Arc<Self>, url: &Url, now: i64, seen: u64, renews: bool) -> bool {
        let fetching = Arc::clone(&self.fetching).lock_owned().await;
        if self.state().fetches != seen {
            return false;
        }
        let document = Arc::clone(self);
        let url = url.clone();
        // The fetch is a separate task, so that a cancelled caller does not cancel it for the
        // callers that wait.
        let fetch = tokio::spawn(async move {
            document.fetch(&url, now, renews).await;
            drop(fetching);
        });
        // A panic is in the log already, and the document is unchanged.
        let _ = fetch.await;
        true
    }

    /// Starts a fetch in the background, unless one is under way or has just failed.
    fn refresh_in_background(self: &Arc<Self>, url: &Url, now: i64, seen: u64) {
        let Ok(fetching) = Arc::clone(&self.fetching).try_lock_owned() else {
            return;
        };
        {
            let state = self.state();
            if state.fetches != seen || state.failing(now) {
                return;
            }
        }
        let document = Arc::clone(self);
        let url = url.clone();
        tokio::spawn(async move {
            document.fetch(&url, now, false).await;
            drop(fetching);
        });
    }

    async fn fetch(&self, url: &Url, now: i64, renews: bool) {
        let started = Instant::now();
        let fetched = timeout(DEADLINE, attempt::retry_once(|| self.attempt(url, now)))
            .await
            .unwrap_or_else(late);
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
            Err(unavailable) => state.failure = Some(unavailable),
        }
        if let Some(failure) = &state.failure {
            let provider = &self.provider;
            let setting = self.setting;
            tracing::warn!(provider, setting, host = url.host_str(), cause = %failure, "fetching a provider document failed");
        }
    }

    async fn attempt(&self, url: &Url, now: i64) -> Result<Held<T>, Failure<Unavailable>> {
        let (value, headers) = self.download(url).await?;
        let lifetime = freshness::lifetime(&headers, now);
        let expires_at = now.saturating_add(lifetime);
        Ok(Held {
            value,
            url: url.clone(),
            refresh_at: expires_at.saturating_sub(lifetime / 5),
            expires_at,
        })
    }

    pub async fn download(&self, url: &Url) -> Result<(T, HeaderMap), Failure<Unavailable>> {
        let response = attempt::send(self.client.get(url.clone())).await?;
        let headers = response.headers().clone();
        if response.status() != StatusCode::OK {
            return Err(attempt::unusable(&response, self.setting));
        }
        // Keys have a media type of their own (RFC 7517 §8.5).
        let object =
            answer::object(response, &["application/json", "application/jwk-set+json"]).await?;
        Ok(((self.read)(&object)?, headers))
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn keys(client: Client, provider: &str, setting: &'static str) -> Arc<Document<KeySet>> {
    let read = |document: &Object| {
        KeySet::read(document).map_err(|none| Unavailable {
            seen: Some(format!("contain {none}")),
            ..Unavailable::new(Class::NoKeys)
        })
    };
    Document::new(client, provider, setting, Box::new(read))
}

impl Document<KeySet> {
    /// Verifies a signature with the keys at this URL. They are fetched again if the signature's
    /// key is missing.
    pub async fn verify<'t>(
        self: &Arc<Self>,
        jws: &Jws<'t>,
        issuers: &Issuers,
        url: &Url,
        now: i64,
    ) -> Result<Result<&'t Object, jws::Failure>, Unavailable> {
        let keys = self.get(url, now).await?;
        match jws.verify(&keys.value, issuers) {
            Err(jws::Failure::UnknownKey) => {}
            verdict => return Ok(verdict),
        }
        // The provider may have published new keys.
        let (keys, own) = self.renew(url, now, &keys).await?;
        match jws.verify(&keys.value, issuers) {
            // The keys were fetched before this token came, and its key may be newer.
            Err(jws::Failure::UnknownKey) if !own => Err(unknown_key(1)),
            verdict => Ok(verdict),
        }
    }
}

pub(super) fn unfit(setting: &'static str) -> impl Fn(Unfit) -> Unavailable {
    move |unfit| Unavailable {
        why: Some(unfit.to_string()),
        ..Unavailable::misconfigured(Class::Metadata, setting)
    }
}

/// Reports a key id that is not in the document but may be in the next one.
fn unknown_key(seconds: i64) -> Unavailable {
    // A client can make up a key id.
    Unavailable::after(Class::UnknownKey, u32::try_from(seconds).unwrap_or(1)).by_token()
}

/// Returns the seconds between the two times, even if the clock was set back meanwhile.
fn since(at: Option<i64>, now: i64) -> i64 {
    at.map_or(i64::MAX, |at| now.saturating_sub(at).saturating_abs())
}

impl<T> State<T> {
    /// Returns the last good document, if it came from this URL.
    fn held_for(&self, url: &Url) -> Option<Arc<Held<T>>> {
        self.held.as_ref().filter(|held| held.url == *url).cloned()
    }

    fn failing(&self, now: i64) -> bool {
        self.failure.is_some() && since(self.fetched_at, now) < AFTER_FAILURE
    }

    fn last_failure(&self) -> Unavailable {
        self.failure
            .clone()
            .unwrap_or(Unavailable::new(Class::NoDocument))
    }
}

impl<T> Held<T> {
    /// Returns true if the document may be used while its provider fails.
    const fn is_usable(&self, now: i64) -> bool {
        now < self.expires_at.saturating_add(STALE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::client;
    use super::*;

    const NOW: i64 = 2_000_000_000;

    /// A document at a URL where no server listens.
    fn document() -> (Arc<Document<u32>>, Url) {
        let document = Document::new(
            client::build().unwrap(),
            "idp",
            "jwks_url",
            Box::new(|_| Ok(0)),
        );
        (document, Url::parse("http://127.0.0.1:1/").unwrap())
    }

    #[tokio::test]
    async fn a_caller_with_an_older_document_gets_the_newer_without_fetching() {
        let (document, url) = document();
        let held = |value| {
            Arc::new(Held {
                value,
                url: url.clone(),
                refresh_at: NOW,
                expires_at: NOW,
            })
        };
        document.state().held = Some(held(2));
        let (newer, own) = document.renew(&url, NOW, &held(1)).await.unwrap();
        assert_eq!((newer.value, own), (2, false));
    }

    #[tokio::test]
    async fn no_background_fetch_follows_another_callers_fetch_or_a_failure() {
        let (document, url) = document();
        document.state().fetched_at = Some(NOW);
        for (seen, failed, fetches) in [(1, false, false), (0, true, false), (0, false, true)] {
            document.state().failure = failed.then(|| Unavailable::new(Class::Connect));
            document.refresh_in_background(&url, NOW, seen);
            assert_eq!(
                document.fetching.try_lock().is_err(),
                fetches,
                "{seen} {failed}"
            );
        }
    }
}
