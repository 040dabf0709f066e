//! The circuit breaker of one provider. After enough failures it sends a probe of its own. If the probe
//! fails, no call is made for some seconds; then the next probe decides.
//!
//! A failure is a call that a working provider would have answered: no connection, a timeout, a 5xx, 403, 404
//! or 429. A response that makes no sense is not a failure. A client with a crafted token may cause any of
//! them, so failures of clients' calls only make the provider suspicious, however many clients there seem to
//! be. Only the probe opens the breaker, because its token is chosen by no client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive failures that make the provider suspicious.
const CONSECUTIVE: u32 = 5;
/// The fewest calls for which a failure rate is computed, and the time for which a call counts.
const SAMPLE: usize = 20;
const WINDOW: Duration = Duration::from_secs(30);
/// The most calls that are remembered.
const REMEMBERED: usize = 200;
/// The time for which the breaker stays open. Together with the longest call it is less than ten seconds,
/// after which a provider that has recovered is called again.
const OPEN: Duration = Duration::from_secs(4);
/// The longest time for which the breaker stays open if the provider sends `Retry-After`.
const LONGEST: Duration = Duration::from_secs(30);

/// The state of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// All calls are made.
    #[default]
    Closed,
    /// No call is made.
    Open,
    /// One call is made, and it is under way.
    HalfOpen,
}

impl State {
    /// Returns the name in logs and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The provider works.
    Answered,
    /// The provider does not work. It may have said for how long.
    Failed(Option<Duration>),
    /// The result is unknown, because the caller was cancelled.
    Abandoned,
}

/// The internal state. Calls are admitted in the first three.
#[derive(Debug)]
enum Inner {
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

/// The permission to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    /// The generation in which the call was admitted.
    pub era: Era,
    /// True if the caller has to probe first.
    pub probes: bool,
}

/// The number of times the breaker has opened. The result of a call from an older generation is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Era(u64);

#[derive(Debug)]
struct Memory {
    inner: Inner,
    era: Era,
    consecutive: u32,
    /// The time at which each call ended, and true if it succeeded.
    calls: VecDeque<(Instant, bool)>,
}

/// The circuit breaker of one provider.
#[derive(Debug)]
pub(super) struct Breaker(Mutex<Memory>);

impl Breaker {
    pub fn new() -> Self {
        let calls = VecDeque::with_capacity(REMEMBERED);
        Self(Mutex::new(Memory { inner: Inner::Closed, era: Era::default(), consecutive: 0, calls }))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state.
    pub fn state(&self, now: Instant) -> State {
        let memory = self.memory();
        match memory.inner {
            Inner::Closed | Inner::Suspicious | Inner::Probing => State::Closed,
            Inner::Open { .. } if memory.open_for(now).is_some() => State::Open,
            Inner::Open { .. } | Inner::HalfOpen => State::HalfOpen,
        }
    }

    /// Returns the time for which no call is admitted; `None` if calls are.
    pub fn open_for(&self, now: Instant) -> Option<Duration> {
        self.memory().open_for(now)
    }

    /// Admits a call, possibly after a probe, or returns the time for which no call is admitted. The caller
    /// has to report the results with [`Breaker::probed`] and [`Breaker::judge`].
    pub fn admit(&self, now: Instant) -> Result<Admission, Duration> {
        let mut memory = self.memory();
        if let Some(wait) = memory.open_for(now) {
            return Err(wait);
        }
        let (next, probes) = match memory.inner {
            Inner::Closed | Inner::Probing => return Ok(Admission { era: memory.era, probes: false }),
            Inner::Suspicious => (Inner::Probing, true),
            Inner::Open { .. } => (Inner::HalfOpen, true),
            Inner::HalfOpen => return Err(Duration::from_secs(1)),
        };
        memory.inner = next;
        Ok(Admission { era: memory.era, probes })
    }

    /// Records the result of a probe. Returns the state if it has changed for callers.
    pub fn probed(&self, era: Era, verdict: Verdict, now: Instant) -> Option<State> {
        let mut memory = self.memory();
        if era != memory.era {
            return None;
        }
        let half_open = match memory.inner {
            Inner::Probing => false,
            Inner::HalfOpen => true,
            Inner::Closed | Inner::Suspicious | Inner::Open { .. } => return None,
        };
        match verdict {
            Verdict::Answered => {
                memory.inner = Inner::Closed;
                memory.forget();
                half_open.then_some(State::Closed)
            }
            Verdict::Failed(wish) => {
                memory.open(wish, now);
                (!half_open).then_some(State::Open)
            }
            Verdict::Abandoned => {
                memory.inner = if half_open { Inner::Open { until: now } } else { Inner::Suspicious };
                None
            }
        }
    }

    /// Records the result of a call.
    pub fn judge(&self, era: Era, verdict: Verdict, now: Instant) {
        let mut memory = self.memory();
        // The result of a call from before the breaker opened no longer counts.
        let open = matches!(memory.inner, Inner::Open { .. } | Inner::HalfOpen);
        if era != memory.era || open {
            return;
        }
        match verdict {
            Verdict::Abandoned => {}
            Verdict::Answered => {
                memory.consecutive = 0;
                memory.remember(now, true);
            }
            Verdict::Failed(_) => {
                memory.consecutive += 1;
                memory.remember(now, false);
                let failed = memory.calls.iter().filter(|(_, well)| !well).count();
                let often = memory.calls.len() >= SAMPLE && failed * 2 >= memory.calls.len();
                if matches!(memory.inner, Inner::Closed) && (memory.consecutive >= CONSECUTIVE || often) {
                    memory.inner = Inner::Suspicious;
                }
            }
        }
    }
}

impl Memory {
    fn open_for(&self, now: Instant) -> Option<Duration> {
        match self.inner {
            Inner::Open { until } => until.checked_duration_since(now).filter(|wait| !wait.is_zero()),
            _ => None,
        }
    }

    fn open(&mut self, wish: Option<Duration>, now: Instant) {
        let time = wish.unwrap_or(OPEN).clamp(OPEN, LONGEST);
        self.inner = Inner::Open { until: now + time };
        self.era.0 += 1;
        self.forget();
    }

    fn forget(&mut self) {
        self.consecutive = 0;
        self.calls.clear();
    }

    fn remember(&mut self, now: Instant, well: bool) {
        while self.calls.len() >= REMEMBERED
            || self.calls.front().is_some_and(|(ended, _)| now.saturating_duration_since(*ended) > WINDOW)
        {
            self.calls.pop_front();
        }
        self.calls.push_back((now, well));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Verdict = Verdict::Failed(None);

    /// A call that is let through, with the probe that it takes, and ends at once.
    fn end(breaker: &Breaker, probe: Verdict, verdict: Verdict, now: Instant) {
        let Admission { era, probes } = breaker.admit(now).unwrap();
        if probes {
            breaker.probed(era, probe, now);
        }
        if !probes || probe == Verdict::Answered {
            breaker.judge(era, verdict, now);
        }
    }

    fn fail(breaker: &Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            end(breaker, FAILED, FAILED, now);
        }
    }

    #[test]
    fn five_failures_in_a_row_and_a_failed_probe_open_it_and_one_probe_closes_it() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        fail(&breaker, 5, start);
        assert_eq!(breaker.state(start), State::Closed);
        let Admission { era, probes } = breaker.admit(start).unwrap();
        assert!(probes);
        assert!(!breaker.admit(start).unwrap().probes, "the others need not wait for it");
        assert_eq!(breaker.probed(era, FAILED, start), Some(State::Open));
        assert_eq!((breaker.state(start), breaker.admit(start)), (State::Open, Err(OPEN)));
        assert_eq!((breaker.open_for(start), breaker.open_for(start + OPEN)), (Some(OPEN), None));
        let later = start + OPEN;
        let Admission { era, probes } = breaker.admit(later).unwrap();
        assert!(probes);
        assert!(breaker.admit(later).is_err(), "one probe at a time");
        assert_eq!(breaker.probed(era, Verdict::Answered, later), Some(State::Closed));
        fail(&breaker, 5, later);
        assert_eq!(breaker.state(later), State::Closed, "what was before is forgotten");
    }

    #[test]
    fn it_is_half_open_once_its_time_is_over_though_nobody_has_called_yet() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        fail(&breaker, 6, start);
        let end = start + OPEN;
        assert_eq!(breaker.state(end.checked_sub(Duration::from_millis(1)).unwrap()), State::Open);
        assert_eq!(breaker.state(end), State::HalfOpen);
        breaker.admit(end).unwrap();
        assert_eq!(breaker.state(end), State::HalfOpen, "and while the probe is under way");
    }

    #[test]
    fn no_number_of_callers_failures_opens_it_while_probes_are_answered() {
        let (breaker, now) = (Breaker::new(), Instant::now());
        let mut probes = 0;
        for _ in 0..1_000 {
            let admission = breaker.admit(now).unwrap();
            if admission.probes {
                probes += 1;
                assert_eq!(breaker.probed(admission.era, Verdict::Answered, now), None);
            }
            breaker.judge(admission.era, FAILED, now);
            assert_eq!(breaker.state(now), State::Closed);
        }
        assert_eq!(probes, 199, "one for five");
    }

    #[test]
    fn a_failed_probe_keeps_it_open_and_an_abandoned_one_makes_room_for_the_next() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        fail(&breaker, 5, start);
        let suspicious = breaker.admit(start).unwrap();
        assert_eq!(breaker.probed(suspicious.era, Verdict::Abandoned, start), None);
        fail(&breaker, 1, start);
        assert_eq!(breaker.state(start), State::Open);
        let later = start + OPEN;
        end(&breaker, FAILED, FAILED, later);
        assert_eq!(breaker.state(later), State::Open);
        let later = later + OPEN;
        end(&breaker, Verdict::Abandoned, FAILED, later);
        assert!(breaker.admit(later).unwrap().probes);
    }

    #[test]
    fn half_of_twenty_calls_failing_makes_it_suspicious_though_never_five_in_a_row() {
        let (breaker, now) = (Breaker::new(), Instant::now());
        for call in 0..20 {
            let admission = breaker.admit(now).unwrap();
            assert!(!admission.probes, "{call}");
            breaker.judge(admission.era, if call % 2 == 0 { Verdict::Answered } else { FAILED }, now);
        }
        assert!(breaker.admit(now).unwrap().probes);
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        for second in 0..100 {
            let now = start + Duration::from_secs(4 * second);
            end(&breaker, FAILED, if second % 2 == 0 { Verdict::Answered } else { FAILED }, now);
        }
        let now = start + Duration::from_secs(400);
        assert!(!breaker.admit(now).unwrap().probes, "too few calls for a rate");
    }

    #[test]
    fn a_call_counts_for_half_a_minute() {
        for (age, counts) in [(WINDOW, true), (WINDOW + Duration::from_millis(1), false)] {
            let (breaker, start) = (Breaker::new(), Instant::now());
            let judge = |call: usize, now| {
                let verdict = if call.is_multiple_of(2) { Verdict::Answered } else { FAILED };
                breaker.judge(breaker.admit(now).unwrap().era, verdict, now);
            };
            (0..SAMPLE - 1).for_each(|call| judge(call, start));
            judge(SAMPLE - 1, start + age);
            assert_eq!(breaker.admit(start + age).unwrap().probes, counts, "{age:?}");
        }
    }

    #[test]
    fn what_was_let_through_before_it_opened_changes_nothing_afterwards() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        let slow: Vec<_> = (0..20).map(|_| breaker.admit(start).unwrap().era).collect();
        fail(&breaker, 6, start);
        breaker.judge(slow[0], Verdict::Answered, start);
        assert_eq!(breaker.state(start), State::Open);
        let later = start + OPEN;
        let probe = breaker.admit(later).unwrap().era;
        breaker.judge(slow[1], FAILED, later);
        assert_eq!(
            breaker.probed(probe, Verdict::Answered, later),
            Some(State::Closed),
            "it is the probe's to say"
        );
        for late in &slow {
            breaker.judge(*late, FAILED, later);
        }
        assert!(!breaker.admit(later).unwrap().probes);
    }

    #[test]
    fn a_provider_that_says_when_to_come_back_is_left_alone_until_then_within_reason() {
        for (wish, expected) in [(1, OPEN), (10, Duration::from_secs(10)), (86_400, LONGEST)] {
            let (breaker, now) = (Breaker::new(), Instant::now());
            for _ in 0..6 {
                end(&breaker, Verdict::Failed(Some(Duration::from_secs(wish))), FAILED, now);
            }
            assert_eq!(breaker.admit(now), Err(expected));
        }
    }
}
