//! The circuit breaker of one provider: after enough failures nobody asks for a while, then one
//! probe does, and what becomes of it decides for all.
//!
//! A failure is a call that a working provider would have answered: no connection, no answer in
//! time, a 5xx, 403, 404 or 429. An answer that makes no sense is none of these, since whoever sends
//! a strange token may be its cause.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row that open it.
const CONSECUTIVE: u32 = 5;
/// Calls that a failure rate is told of, at least, and for how long a call counts.
const SAMPLE: usize = 20;
const WINDOW: Duration = Duration::from_secs(30);
/// Calls that are remembered, at most.
const REMEMBERED: usize = 200;
/// How long it stays open. With the longest call that is less than ten seconds: so long it takes, at
/// most, until a provider that has recovered is asked again.
const OPEN: Duration = Duration::from_secs(4);
/// How long it stays open, at most, where the provider says for how long it does not want to be asked.
const LONGEST: Duration = Duration::from_secs(30);

/// What the breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Everything.
    #[default]
    Closed,
    /// Nothing.
    Open,
    /// One call, which is under way.
    HalfOpen,
}

impl State {
    /// The name in logs and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The provider works.
    Answered,
    /// It does not, and may have said for how long.
    Failed(Option<Duration>),
    /// Nobody knows: whoever asked went away.
    Abandoned,
}

#[derive(Debug)]
enum Inner {
    Closed,
    Open { until: Instant },
    HalfOpen,
}

#[derive(Debug)]
struct Memory {
    inner: Inner,
    consecutive: u32,
    /// When calls ended, and whether well.
    calls: VecDeque<(Instant, bool)>,
}

/// The breaker.
#[derive(Debug)]
pub(super) struct Breaker(Mutex<Memory>);

impl Breaker {
    pub fn new() -> Self {
        let calls = VecDeque::with_capacity(REMEMBERED);
        Self(Mutex::new(Memory { inner: Inner::Closed, consecutive: 0, calls }))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it lets through.
    pub fn state(&self, now: Instant) -> State {
        match self.memory().inner {
            Inner::Closed => State::Closed,
            Inner::Open { until } if now < until => State::Open,
            Inner::Open { .. } | Inner::HalfOpen => State::HalfOpen,
        }
    }

    /// Lets a call through, which then has to be judged, or says how long there will be none.
    pub fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut memory = self.memory();
        match memory.inner {
            Inner::Closed => Ok(()),
            Inner::Open { until } if now < until => Err(until - now),
            Inner::Open { .. } => {
                memory.inner = Inner::HalfOpen;
                Ok(())
            }
            Inner::HalfOpen => Err(Duration::from_secs(1)),
        }
    }

    /// Takes note of how a call ended. Answers the new state when that is another one.
    pub fn judge(&self, verdict: Verdict, now: Instant) -> Option<State> {
        let mut memory = self.memory();
        match (&memory.inner, verdict) {
            // Whoever was let through before it opened has nothing to say any more.
            (Inner::Open { .. }, _) | (Inner::Closed, Verdict::Abandoned) => None,
            (Inner::HalfOpen, Verdict::Abandoned) => {
                memory.inner = Inner::Open { until: now };
                None
            }
            (Inner::HalfOpen, Verdict::Answered) => {
                *memory = Memory { inner: Inner::Closed, consecutive: 0, calls: VecDeque::new() };
                Some(State::Closed)
            }
            (Inner::HalfOpen, Verdict::Failed(wish)) => {
                memory.open(wish, now);
                None
            }
            (Inner::Closed, Verdict::Answered) => {
                memory.consecutive = 0;
                memory.remember(now, true);
                None
            }
            (Inner::Closed, Verdict::Failed(wish)) => {
                memory.consecutive += 1;
                memory.remember(now, false);
                let failed = memory.calls.iter().filter(|(_, well)| !well).count();
                let often = memory.calls.len() >= SAMPLE && failed * 2 >= memory.calls.len();
                if memory.consecutive < CONSECUTIVE && !often {
                    return None;
                }
                memory.open(wish, now);
                Some(State::Open)
            }
        }
    }
}

impl Memory {
    fn open(&mut self, wish: Option<Duration>, now: Instant) {
        let time = wish.unwrap_or(OPEN).clamp(OPEN, LONGEST);
        self.inner = Inner::Open { until: now + time };
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

    fn fail(breaker: &Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            breaker.admit(now).unwrap();
            breaker.judge(FAILED, now);
        }
    }

    #[test]
    fn five_failures_in_a_row_open_it_and_one_probe_closes_it() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        fail(&breaker, 4, start);
        assert_eq!(breaker.state(start), State::Closed);
        fail(&breaker, 1, start);
        assert_eq!((breaker.state(start), breaker.admit(start)), (State::Open, Err(OPEN)));
        let later = start + OPEN;
        assert_eq!(breaker.admit(later), Ok(()));
        assert!(breaker.admit(later).is_err(), "one probe at a time");
        assert_eq!(breaker.judge(Verdict::Answered, later), Some(State::Closed));
        fail(&breaker, 4, later);
        assert_eq!(breaker.state(later), State::Closed, "what was before is forgotten");
    }

    #[test]
    fn a_failed_probe_keeps_it_open_and_an_abandoned_one_makes_room_for_the_next() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        fail(&breaker, 5, start);
        let later = start + OPEN;
        breaker.admit(later).unwrap();
        breaker.judge(FAILED, later);
        assert_eq!(breaker.state(later), State::Open);
        let later = later + OPEN;
        breaker.admit(later).unwrap();
        breaker.judge(Verdict::Abandoned, later);
        assert_eq!(breaker.admit(later), Ok(()));
    }

    #[test]
    fn half_of_twenty_calls_failing_opens_it_though_never_five_in_a_row() {
        let (breaker, now) = (Breaker::new(), Instant::now());
        for call in 0..20 {
            assert_eq!(breaker.state(now), State::Closed, "{call}");
            breaker.admit(now).unwrap();
            breaker.judge(if call % 2 == 0 { Verdict::Answered } else { FAILED }, now);
        }
        assert_eq!(breaker.state(now), State::Open);
    }

    #[test]
    fn what_was_long_ago_does_not_count_and_late_verdicts_change_nothing() {
        let (breaker, start) = (Breaker::new(), Instant::now());
        for second in 0..100 {
            let now = start + Duration::from_secs(4 * second);
            breaker.judge(if second % 2 == 0 { Verdict::Answered } else { FAILED }, now);
        }
        let now = start + Duration::from_secs(400);
        assert_eq!(breaker.state(now), State::Closed, "too few calls for a rate");
        breaker.judge(Verdict::Answered, now);
        fail(&breaker, 5, now);
        assert_eq!(breaker.judge(Verdict::Answered, now), None);
        assert_eq!(breaker.state(now), State::Open);
    }

    #[test]
    fn a_provider_that_says_when_to_come_back_is_left_alone_until_then_within_reason() {
        for (wish, expected) in [(1, OPEN), (10, Duration::from_secs(10)), (86_400, LONGEST)] {
            let (breaker, now) = (Breaker::new(), Instant::now());
            for _ in 0..5 {
                breaker.judge(Verdict::Failed(Some(Duration::from_secs(wish))), now);
            }
            assert_eq!(breaker.admit(now), Err(expected));
        }
    }
}
