//! The token-information endpoint of one provider, with its bulkhead and its single flight per
//! token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use tokio::time::timeout;

use super::answer::{DEADLINE, Unavailable, late};
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
    counters: CallCounters,
}

impl Endpoint {
    pub fn new(provider: &Provider) -> Self {
        Self {
            bulkhead: Bulkhead::new(&provider.name, provider.max_calls as usize),
            single_flight: SingleFlight::new(),
            counters: CallCounters::default(),
        }
    }

    pub fn call_stats(&self) -> CallStats {
        self.counters.stats(self.bulkhead.state())
    }

    /// Returns the endpoint's claims about a token. Concurrent callers with the same token share
    /// one call; each of them validates the claims.
    ///
    /// `probe` asks about a token of our own. It is called after too many failures of callers' tokens.
    pub async fn ask(
        &self,
        token: &IdToken,
        call: impl AsyncFnOnce() -> Result<Object, Error>,
        probe: impl AsyncFnOnce() -> Result<Object, Error>,
    ) -> Result<Arc<Object>, Error> {
        self.single_flight
            .ask(key(token), || self.call(call, probe))
            .await
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
                .probed(call_result(
                    &timeout(PROBE, probe()).await.unwrap_or_else(late),
                ))
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

/// Returns the key of a token, which itself is not stored.
fn key(token: &IdToken) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(digest(&SHA256, token.expose().as_bytes()).as_ref());
    key
}
