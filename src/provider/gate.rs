//! What stands between the service and one provider: a bounded number of calls at once (bulkhead), a
//! bounded and short wait for a place, and the breaker. A provider's bad day stays its own.

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::answer::Unavailable;
use super::breaker::{Admission, Breaker, Era, State, Verdict};
use crate::clock;

/// Longest wait for a place.
const WAIT: Duration = Duration::from_millis(250);
/// Requests that wait for a place, at most, for each place there is.
const WAITING: usize = 4;

/// The gate to a provider.
#[derive(Debug)]
pub(super) struct Gate {
    name: String,
    places: Semaphore,
    waiting: Semaphore,
    breaker: Breaker,
}

/// One place, and the duty to say how the call ended.
pub(super) struct Pass<'a> {
    gate: &'a Gate,
    _place: SemaphorePermit<'a>,
    era: Era,
    /// Whether the provider has to be probed before the call.
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

    /// What the breaker lets through.
    pub fn state(&self) -> State {
        self.breaker.state(Instant::now())
    }

    /// A place for one call.
    ///
    /// # Errors
    /// There is none in time, or the breaker is open.
    pub async fn enter(&self) -> Result<Pass<'_>, Unavailable> {
        // While it is open nobody even waits.
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
    // Rounded up: who comes back then finds it half open.
    let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
    Unavailable::after("breaker_open", spread(seconds, 3))
}

/// One of so many seconds from the first on, so that those who are turned away together do not come
/// back together.
fn spread(first: u32, seconds: u32) -> u32 {
    // Whoever asks cannot choose the clock's low digits, and nothing more is asked of them.
    first.saturating_add(clock::subsecond_nanos() / 1_000 % seconds)
}

impl Pass<'_> {
    /// Whether the provider has to be probed before the call.
    pub const fn probes(&self) -> bool {
        self.probes
    }

    /// Ends the probe.
    ///
    /// # Errors
    /// It failed, and there is no call.
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

    /// Ends the call.
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
