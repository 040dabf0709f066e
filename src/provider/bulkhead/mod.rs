//! The bulkhead of one provider: a bounded number of concurrent calls, a bounded and short wait for
//! a permit, and the circuit breaker. A failing provider does not affect the others.

mod breaker;

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

pub(super) use self::breaker::CallResult;
pub use self::breaker::State;
use self::breaker::{Admission, Breaker, Generation};
use super::answer::{Class, Unavailable};
use crate::clock;

const WAIT: Duration = Duration::from_millis(250);
/// The number of requests that may wait, for each permit there is.
const WAITING: usize = 4;

#[derive(Debug)]
pub(super) struct Bulkhead {
    name: String,
    permits: Semaphore,
    waiting: Semaphore,
    breaker: Breaker,
}

/// A permit for one call. Its holder has to report the result.
pub(super) struct Permit<'a> {
    bulkhead: &'a Bulkhead,
    _slot: SemaphorePermit<'a>,
    generation: Generation,
    /// True if the provider has to be probed before the call.
    needs_probe: bool,
    result: CallResult,
}

impl Bulkhead {
    pub fn new(name: &str, permits: usize) -> Self {
        Self {
            name: name.to_owned(),
            permits: Semaphore::new(permits),
            waiting: Semaphore::new(permits.saturating_mul(WAITING)),
            breaker: Breaker::new(),
        }
    }

    pub fn state(&self) -> State {
        self.breaker.state(Instant::now())
    }

    /// Acquires a permit for one call.
    ///
    /// # Errors
    /// No permit is free in time, or the circuit breaker is open.
    pub async fn acquire(&self) -> Result<Permit<'_>, Unavailable> {
        // While the breaker is open, no request waits for a permit.
        if let Some(wait) = self.breaker.open_for(Instant::now()) {
            return Err(breaker_open(wait));
        }
        let saturated = || Unavailable::after(Class::Saturated, spread(1, 3));
        let slot = if let Ok(slot) = self.permits.try_acquire() {
            slot
        } else {
            let _waiting = self.waiting.try_acquire().map_err(|_| saturated())?;
            let slot = timeout(WAIT, self.permits.acquire()).await;
            slot.map_err(|_| saturated())?.map_err(|_| saturated())?
        };
        let Admission {
            generation,
            needs_probe,
        } = self.breaker.admit(Instant::now()).map_err(breaker_open)?;
        Ok(Permit {
            bulkhead: self,
            _slot: slot,
            generation,
            needs_probe,
            result: CallResult::Cancelled,
        })
    }
}

fn breaker_open(wait: Duration) -> Unavailable {
    // Rounded up, so that a client that retries then finds the breaker half open.
    let seconds = u32::try_from(wait.as_secs())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    Unavailable::after(Class::BreakerOpen, spread(seconds, 3))
}

/// Returns one of `seconds` values from `first` on, so that clients refused at the same time do not
/// all retry at the same time.
fn spread(first: u32, seconds: u32) -> u32 {
    // The low digits of the clock are random enough for this, and a client cannot choose them.
    first.saturating_add(clock::subsecond_nanos() / 1_000 % seconds)
}

impl Permit<'_> {
    pub const fn needs_probe(&self) -> bool {
        self.needs_probe
    }

    /// Reports the result of the probe.
    ///
    /// # Errors
    /// The probe failed, so there is no call.
    pub fn probed(&mut self, result: CallResult) -> Result<(), Unavailable> {
        self.needs_probe = false;
        self.record_probe(result);
        self.bulkhead
            .breaker
            .open_for(Instant::now())
            .map_or(Ok(()), |wait| Err(breaker_open(wait)))
    }

    fn record_probe(&self, probe: CallResult) {
        match self
            .bulkhead
            .breaker
            .probed(self.generation, probe, Instant::now())
        {
            Some(State::Open) => tracing::warn!(
                provider = self.bulkhead.name,
                "circuit breaker opened: calls to the identity provider are suspended"
            ),
            Some(_) => tracing::info!(
                provider = self.bulkhead.name,
                "circuit breaker closed: the identity provider works again"
            ),
            None => {}
        }
    }

    /// Reports the result of the call.
    pub fn record(mut self, result: CallResult) {
        self.result = result;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.needs_probe {
            self.record_probe(CallResult::Cancelled);
        } else {
            self.bulkhead
                .breaker
                .record(self.generation, self.result, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rejected_callers_get_spread_retry_times_and_none_too_early() {
        for (wait, seconds) in [
            (Duration::from_millis(1), 1..=3),
            (Duration::from_millis(4_999), 5..=7),
        ] {
            let told: BTreeSet<u32> = (0..100_000)
                .map(|_| breaker_open(wait).retry_after)
                .collect();
            assert!(told.into_iter().eq(seconds), "{wait:?}");
        }
    }
}
