//! The token-information endpoint of one provider, with its bulkhead, its single flight per token and its
//! answer cache.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use tokio::time::timeout;

use super::answer::{DEADLINE, Unavailable, late};
use super::answer_cache::AnswerCache;
use super::bulkhead::{Bulkhead, CallResult};
use super::call_stats::{CallCounters, CallStats};
use super::error::Error;
use super::single_flight::{Key, SingleFlight};
use crate::config::Provider;
use crate::domain::{IdToken, Object};

/// The timeout of a probe. A request waits for it and has a deadline of its own.
const PROBE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Endpoint {
    bulkhead: Bulkhead,
    single_flight: SingleFlight<Result<Arc<Object>, Error>>,
    answer_cache: AnswerCache<Arc<Object>>,
    counters: CallCounters,
}

impl Endpoint {
    pub fn new(provider: &Provider) -> Self {
        Self {
            bulkhead: Bulkhead::new(&provider.name, provider.max_calls),
            single_flight: SingleFlight::new(),
            answer_cache: AnswerCache::new(provider.verify_cache),
            counters: CallCounters::default(),
        }
    }

    pub fn call_stats(&self) -> CallStats {
        self.counters.stats(self.bulkhead.state())
    }

    /// Returns the endpoint's claims about a token. Concurrent callers with the same token share one call;
    /// each of them validates the claims.
    ///
    /// `probe` asks about a token of our own. It is called after too many failures of callers' tokens.
    pub async fn ask(
        &self,
        token: &IdToken,
        now: i64,
        call: impl AsyncFnOnce() -> Result<Object, Error>,
        probe: impl AsyncFnOnce() -> Result<Object, Error>,
    ) -> Result<Arc<Object>, Error> {
        let key = key(token);
        if let Some(answer) = self.answer_cache.get(&key, now) {
            self.counters.count("kept");
            return Ok(answer);
        }
        let answer = self.single_flight.ask(key, || self.call(call, probe)).await?;
        if let Some(expires_at) = expiry(&answer) {
            self.answer_cache.insert(key, answer.clone(), expires_at, now);
        }
        Ok(answer)
    }

    /// Makes the call, if the bulkhead has room.
    async fn call(
        &self,
        call: impl AsyncFnOnce() -> Result<Object, Error>,
        probe: impl AsyncFnOnce() -> Result<Object, Error>,
    ) -> Result<Arc<Object>, Error> {
        let count = |unavailable: &Unavailable| self.counters.count(unavailable.class());
        let mut permit = self.bulkhead.acquire().await.inspect_err(count)?;
        if permit.needs_probe() {
            permit
                .probed(call_result(&timeout(PROBE, probe()).await.unwrap_or_else(late)))
                .inspect_err(count)?;
        }
        let started = Instant::now();
        let answer = timeout(DEADLINE, call()).await.unwrap_or_else(late);
        let outcome = match &answer {
            Ok(_) => "answered",
            Err(Error::Refused(_)) => "refused",
            Err(Error::Unavailable(unavailable)) => unavailable.class(),
        };
        self.counters.record_call(outcome, started.elapsed());
        permit.record(call_result(&answer));
        answer.map(Arc::new)
    }
}

/// Classifies the result of a call for the circuit breaker.
fn call_result(answer: &Result<Object, Error>) -> CallResult {
    match answer {
        Err(Error::Unavailable(unavailable)) if unavailable.is_outage() => {
            CallResult::Failure(Some(Duration::from_secs(unavailable.retry_after.into())))
        }
        _ => CallResult::Success,
    }
}

/// Returns the cache key of a token. The token itself is not stored.
fn key(token: &IdToken) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(digest(&SHA256, token.expose().as_bytes()).as_ref());
    key
}

/// Returns the token's `exp`, which some providers write as text.
fn expiry(answer: &Object) -> Option<i64> {
    match answer.get("exp")? {
        Value::String(text) => text.parse().ok(),
        number => number.as_i64(),
    }
}
