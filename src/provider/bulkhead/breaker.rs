//! The circuit breaker of one provider. After enough failures it sends a probe of its own. If the
//! probe fails, no call is made for some seconds; then the next probe decides.
//!
//! A failure is a call that a working provider would have answered: no connection, a timeout, a
//! 5xx, 403, 404 or 429. A response that makes no sense is not a failure. A client with a crafted
//! token may cause any of them, so failures of clients' calls only make the provider suspicious,
//! however many clients there seem to be. Only the probe opens the breaker, because its token is
//! chosen by no client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive failures that make the provider suspicious.
const CONSECUTIVE: u32 = 5;
/// The fewest calls for which a failure rate is computed, and the time for which a call counts.
const SAMPLE: usize = 20;
const WINDOW: Duration = Duration::from_secs(30);
const REMEMBERED: usize = 200;
/// The time for which the breaker stays open. Together with the longest call it is less than ten
/// seconds, after which a provider that has recovered is called again.
const OPEN: Duration = Duration::from_secs(4);
/// The longest time for which the breaker stays open if the provider sends `Retry-After`.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    /// All calls are made.
    #[default]
    Closed,
    /// No call is made.
    Open,
    /// One call is made, and it is under way.
    HalfOpen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    Success,
    /// The provider does not work. It may have said for how long.
    Failure(Option<Duration>),
    /// The result is unknown, because the caller was cancelled.
    Cancelled,
}

/// The internal state. Calls are admitted in the first three.
#[derive(Debug)]
enum Phase {
    Closed,
    /// The next call probes first.
    Suspicious,
    /// A probe is under way; other calls are admitted.
    Probing,
    Open {
        until: Instant,
    },
    /// A probe is under way; other calls are refused.
    HalfOpen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    pub generation: Generation,
    /// True if the caller has to probe first.
    pub needs_probe: bool,
}

/// The number of times the breaker has opened. The result of a call from an older generation is
/// ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Generation(u64);

#[derive(Debug)]
struct Inner {
    phase: Phase,
    generation: Generation,
    consecutive: u32,
    /// The time at which each call ended, and true if it succeeded.
    calls: VecDeque<(Instant, bool)>,
}

#[derive(Debug)]
pub(super) struct Breaker(Mutex<Inner>);

impl Breaker {
    pub fn new() -> Self {
        let calls = VecDeque::with_capacity(REMEMBERED);
        Self(Mutex::new(Inner {
            phase: Phase::Closed,
            generation: Generation::default(),
            consecutive: 0,
            calls,
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self, now: Instant) -> State {
        let inner = self.inner();
        match inner.phase {
            Phase::Closed | Phase::Suspicious | Phase::Probing => State::Closed,
            Phase::Open { .. } if inner.open_for(now).is_some() => State::Open,
            Phase::Open { .. } | Phase::HalfOpen => State::HalfOpen,
        }
    }

    /// Returns the time for which no call is admitted; `None` if calls are.
    pub fn open_for(&self, now: Instant) -> Option<Duration> {
        self.inner().open_for(now)
    }

    /// Admits a call, possibly after a probe, or returns the time for which no call is admitted.
    /// The caller has to report the results with [`Breaker::probed`] and [`Breaker::record`].
    pub fn admit(&self, now: Instant) -> Result<Admission, Duration> {
        let mut inner = self.inner();
        if let Some(wait) = inner.open_for(now) {
            return Err(wait);
        }
        let (next, needs_probe) = match inner.phase {
            Phase::Closed | Phase::Probing => {
                return Ok(Admission {
                    generation: inner.generation,
                    needs_probe: false,
                });
            }
            Phase::Suspicious => (Phase::Probing, true),
            Phase::Open { .. } => (Phase::HalfOpen, true),
            Phase::HalfOpen => return Err(Duration::from_secs(1)),
        };
        inner.phase = next;
        Ok(Admission {
            generation: inner.generation,
            needs_probe,
        })
    }

    /// Records the result of a probe. Returns the state if it has changed for callers.
    pub fn probed(
        &self,
        generation: Generation,
        result: CallResult,
        now: Instant,
    ) -> Option<State> {
        let mut inner = self.inner();
        if generation != inner.generation {
            return None;
        }
        let half_open = match inner.phase {
            Phase::Probing => false,
            Phase::HalfOpen => true,
            Phase::Closed | Phase::Suspicious | Phase::Open { .. } => return None,
        };
        match result {
            CallResult::Success => {
                inner.phase = Phase::Closed;
                inner.reset();
                half_open.then_some(State::Closed)
            }
            CallResult::Failure(retry_after) => {
                inner.open(retry_after, now);
                (!half_open).then_some(State::Open)
            }
            CallResult::Cancelled => {
                inner.phase = if half_open {
                    Phase::Open { until: now }
                } else {
                    Phase::Suspicious
                };
                None
            }
        }
    }

    pub fn record(&self, generation: Generation, result: CallResult, now: Instant) {
        let mut inner = self.inner();
        // The result of a call from before the breaker opened no longer counts.
        let open = matches!(inner.phase, Phase::Open { .. } | Phase::HalfOpen);
        if generation != inner.generation || open {
            return;
        }
        match result {
            CallResult::Cancelled => {}
            CallResult::Success => {
                inner.consecutive = 0;
                inner.remember(now, true);
            }
            CallResult::Failure(_) => {
                inner.consecutive += 1;
                inner.remember(now, false);
                let failed = inner
                    .calls
                    .iter()
                    .filter(|(_, succeeded)| !succeeded)
                    .count();
                let often = inner.calls.len() >= SAMPLE && failed * 2 >= inner.calls.len();
                if matches!(inner.phase, Phase::Closed)
                    && (inner.consecutive >= CONSECUTIVE || often)
                {
                    inner.phase = Phase::Suspicious;
                }
            }
        }
    }
}

impl Inner {
    fn open_for(&self, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Open { until } => until
                .checked_duration_since(now)
                .filter(|wait| !wait.is_zero()),
            _ => None,
        }
    }

    fn open(&mut self, retry_after: Option<Duration>, now: Instant) {
        let time = retry_after.unwrap_or(OPEN).clamp(OPEN, LONGEST);
        self.phase = Phase::Open { until: now + time };
        self.generation.0 += 1;
        self.reset();
    }

    fn reset(&mut self) {
        self.consecutive = 0;
        self.calls.clear();
    }

    fn remember(&mut self, now: Instant, succeeded: bool) {
        while self.calls.len() >= REMEMBERED
            || self
                .calls
                .front()
                .is_some_and(|(ended, _)| now.saturating_duration_since(*ended) > WINDOW)
        {
            self.calls.pop_front();
        }
        self.calls.push_back((now, succeeded));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILURE: CallResult = CallResult::Failure(None);

    /// A call that the breaker permits, with its probe, and that ends at once.
    fn end(breaker: &Breaker, probe: CallResult, result: CallResult, now: Instant) {
        let Admission {
            generation,
            needs_probe,
        } = breaker.admit(now).unwrap();
        if needs_probe {
            breaker.probed(generation, probe, now);
        }
        if !needs_probe || probe == CallResult::Success {
            breaker.record(generation, result, now);
        }
    }

    fn fail(breaker: &Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            end(breaker, FAILURE, FAILURE, now);
        }
    }

    #[test]
    fn after_five_failures_a_probe_opens_or_closes_the_breaker() {
        let breaker = Breaker::new();
        let start = Instant::now();
        fail(&breaker, 5, start);
        assert_eq!(breaker.state(start), State::Closed);
        let Admission {
            generation,
            needs_probe,
        } = breaker.admit(start).unwrap();
        assert!(needs_probe);
        assert!(
            !breaker.admit(start).unwrap().needs_probe,
            "the others need not wait for it"
        );
        assert_eq!(
            breaker.probed(generation, FAILURE, start),
            Some(State::Open)
        );
        assert_eq!(
            (breaker.state(start), breaker.admit(start)),
            (State::Open, Err(OPEN))
        );
        assert_eq!(
            (breaker.open_for(start), breaker.open_for(start + OPEN)),
            (Some(OPEN), None)
        );
        let later = start + OPEN;
        let Admission {
            generation,
            needs_probe,
        } = breaker.admit(later).unwrap();
        assert!(needs_probe);
        assert!(breaker.admit(later).is_err(), "one probe at a time");
        assert_eq!(
            breaker.probed(generation, CallResult::Success, later),
            Some(State::Closed)
        );
        fail(&breaker, 5, later);
        assert_eq!(
            breaker.state(later),
            State::Closed,
            "what was before is forgotten"
        );
    }

    #[test]
    fn the_breaker_is_half_open_after_its_pause_even_without_calls() {
        let breaker = Breaker::new();
        let start = Instant::now();
        fail(&breaker, 6, start);
        let end = start + OPEN;
        assert_eq!(
            breaker.state(end.checked_sub(Duration::from_millis(1)).unwrap()),
            State::Open
        );
        assert_eq!(breaker.state(end), State::HalfOpen);
        breaker.admit(end).unwrap();
        assert_eq!(
            breaker.state(end),
            State::HalfOpen,
            "and while the probe is under way"
        );
    }

    #[test]
    fn no_number_of_callers_failures_opens_it_while_probes_are_answered() {
        let breaker = Breaker::new();
        let now = Instant::now();
        let mut probes = 0;
        for _ in 0..1_000 {
            let admission = breaker.admit(now).unwrap();
            if admission.needs_probe {
                probes += 1;
                assert_eq!(
                    breaker.probed(admission.generation, CallResult::Success, now),
                    None
                );
            }
            breaker.record(admission.generation, FAILURE, now);
            assert_eq!(breaker.state(now), State::Closed);
        }
        assert_eq!(probes, 199, "one for five");
    }

    #[test]
    fn a_failed_probe_reopens_and_a_cancelled_one_allows_another() {
        let breaker = Breaker::new();
        let start = Instant::now();
        fail(&breaker, 5, start);
        let suspicious = breaker.admit(start).unwrap();
        assert_eq!(
            breaker.probed(suspicious.generation, CallResult::Cancelled, start),
            None
        );
        fail(&breaker, 1, start);
        assert_eq!(breaker.state(start), State::Open);
        let later = start + OPEN;
        end(&breaker, FAILURE, FAILURE, later);
        assert_eq!(breaker.state(later), State::Open);
        let later = later + OPEN;
        end(&breaker, CallResult::Cancelled, FAILURE, later);
        assert!(breaker.admit(later).unwrap().needs_probe);
    }

    #[test]
    fn ten_scattered_failures_in_twenty_calls_demand_a_probe() {
        let breaker = Breaker::new();
        let now = Instant::now();
        for call in 0..20 {
            let admission = breaker.admit(now).unwrap();
            assert!(!admission.needs_probe, "{call}");
            breaker.record(
                admission.generation,
                if call % 2 == 0 {
                    CallResult::Success
                } else {
                    FAILURE
                },
                now,
            );
        }
        assert!(breaker.admit(now).unwrap().needs_probe);
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let breaker = Breaker::new();
        let start = Instant::now();
        for second in 0..100 {
            let now = start + Duration::from_secs(4 * second);
            end(
                &breaker,
                FAILURE,
                if second % 2 == 0 {
                    CallResult::Success
                } else {
                    FAILURE
                },
                now,
            );
        }
        let now = start + Duration::from_secs(400);
        assert!(
            !breaker.admit(now).unwrap().needs_probe,
            "too few calls for a rate"
        );
    }

    #[test]
    fn a_call_counts_for_half_a_minute() {
        for (age, counts) in [(WINDOW, true), (WINDOW + Duration::from_millis(1), false)] {
            let breaker = Breaker::new();
            let start = Instant::now();
            let record = |call: usize, now| {
                let result = if call.is_multiple_of(2) {
                    CallResult::Success
                } else {
                    FAILURE
                };
                breaker.record(breaker.admit(now).unwrap().generation, result, now);
            };
            (0..SAMPLE - 1).for_each(|call| record(call, start));
            record(SAMPLE - 1, start + age);
            assert_eq!(
                breaker.admit(start + age).unwrap().needs_probe,
                counts,
                "{age:?}"
            );
        }
    }

    #[test]
    fn what_was_let_through_before_it_opened_changes_nothing_afterwards() {
        let breaker = Breaker::new();
        let start = Instant::now();
        let slow: Vec<_> = (0..20)
            .map(|_| breaker.admit(start).unwrap().generation)
            .collect();
        fail(&breaker, 6, start);
        breaker.record(slow[0], CallResult::Success, start);
        assert_eq!(breaker.state(start), State::Open);
        let later = start + OPEN;
        let probe = breaker.admit(later).unwrap().generation;
        breaker.record(slow[1], FAILURE, later);
        assert_eq!(
            breaker.probed(probe, CallResult::Success, later),
            Some(State::Closed),
            "it is the probe's to say"
        );
        for late in &slow {
            breaker.record(*late, FAILURE, later);
        }
        assert!(!breaker.admit(later).unwrap().needs_probe);
    }

    #[test]
    fn the_breaker_honours_retry_after_within_bounds() {
        for (retry_after, expected) in [(1, OPEN), (10, Duration::from_secs(10)), (86_400, LONGEST)]
        {
            let breaker = Breaker::new();
            let now = Instant::now();
            for _ in 0..6 {
                end(
                    &breaker,
                    CallResult::Failure(Some(Duration::from_secs(retry_after))),
                    FAILURE,
                    now,
                );
            }
            assert_eq!(breaker.admit(now), Err(expected));
        }
    }
}
