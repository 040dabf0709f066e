//! The protection of one provider: a bounded number of concurrent calls (bulkhead), a bounded and short wait
//! for a permit, and the circuit breaker. A failing provider does not affect the others.

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::answer::Unavailable;
use super::breaker::{Admission, Breaker, Era, State, Verdict};
use crate::clock;

/// The longest wait for a permit.
const WAIT: Duration = Duration::from_millis(250);
/// The number of requests that may wait, for each permit there is.
const WAITING: usize = 4;

/// The bulkhead and the circuit breaker of a provider.
#[derive(Debug)]
pub(super) struct Gate {
    name: String,
    places: Semaphore,
    waiting: Semaphore,
    breaker: Breaker,
}

/// A permit for one call. Its holder has to report the result.
pub(super) struct Pass<'a> {
    gate: &'a Gate,
    _place: SemaphorePermit<'a>,
    era: Era,
    /// True if the provider has to be probed before the call.
    probes: bool,
    verdict: Verdict,
}

impl Gate {
    pub fn new(name: &str, places: usize) -> Self {
        Self {
            name: name.to_owned(),
            places: Semaphore::new(places),
            waiting: Semaphore::new(places.saturating_mul(WAITING)),
            breaker: Breaker::new(),
        }
    }

    /// Returns the state of the circuit breaker.
    pub fn state(&self) -> State {
        self.breaker.state(Instant::now())
    }

    /// Acquires a permit for one call.
    ///
    /// # Errors
    /// No permit is free in time, or the circuit breaker is open.
    pub async fn enter(&self) -> Result<Pass<'_>, Unavailable> {
        // While the breaker is open, no request waits for a permit.
        if let Some(wait) = self.breaker.open_for(Instant::now()) {
            return Err(open(wait));
        }
        let full = || Unavailable::after("no_place", spread(1, 3));
        let place = if let Ok(place) = self.places.try_acquire() {
            place
        } else {
            let _waiting = self.waiting.try_acquire().map_err(|_| full())?;
            let place = timeout(WAIT, self.places.acquire()).await;
            place.map_err(|_| full())?.map_err(|_| full())?
        };
        let Admission { era, probes } = self.breaker.admit(Instant::now()).map_err(open)?;
        Ok(Pass { gate: self, _place: place, era, probes, verdict: Verdict::Abandoned })
    }
}

fn open(wait: Duration) -> Unavailable {
    // Rounded up, so that a client that retries then finds the breaker half open.
    let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
    Unavailable::after("breaker_open", spread(seconds, 3))
}

/// Returns one of `seconds` values from `first` on, so that clients refused at the same time do not all retry
/// at the same time.
fn spread(first: u32, seconds: u32) -> u32 {
    // The low digits of the clock are random enough for this, and a client cannot choose them.
    first.saturating_add(clock::subsecond_nanos() / 1_000 % seconds)
}

impl Pass<'_> {
    /// Returns true if the provider has to be probed before the call.
    pub const fn probes(&self) -> bool {
        self.probes
    }

    /// Reports the result of the probe.
    ///
    /// # Errors
    /// The probe failed, so there is no call.
    pub fn probed(&mut self, verdict: Verdict) -> Result<(), Unavailable> {
        self.probes = false;
        self.tell(verdict);
        self.gate.breaker.open_for(Instant::now()).map_or(Ok(()), |wait| Err(open(wait)))
    }

    fn tell(&self, probe: Verdict) {
        match self.gate.breaker.probed(self.era, probe, Instant::now()) {
            Some(State::Open) => tracing::warn!(
                provider = self.gate.name,
                "the identity provider fails; it is left alone, and asked again in some seconds"
            ),
            Some(_) => tracing::info!(provider = self.gate.name, "the identity provider answers again"),
            None => {}
        }
    }

    /// Reports the result of the call.
    pub fn judge(mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.probes {
            self.tell(Verdict::Abandoned);
        } else {
            self.gate.breaker.judge(self.era, self.verdict, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn those_who_are_turned_away_come_back_in_different_seconds_and_none_too_early() {
        for (wait, seconds) in [(Duration::from_millis(1), 1..=3), (Duration::from_millis(4_999), 5..=7)] {
            let told: BTreeSet<u32> = (0..100_000).map(|_| open(wait).retry_after).collect();
            assert!(told.into_iter().eq(seconds), "{wait:?}");
        }
    }
}
