//! The circuit breaker of one provider: after enough failures a probe of our own asks whether it works, and if that
//! fails, too, nobody asks for a while, and then the next probe does.
//!
//! A failure is a call that a working provider would have answered: no connection, no answer in
//! time, a 5xx, 403, 404 or 429. An answer that makes no sense is none of these. But whoever sends a strange token may
//! be the cause of any of them. So callers' failures only make it suspicious, however many callers there seem to be,
//! and what becomes of a token that nobody has chosen decides for all.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row that make it suspicious.
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

/// Calls are let through in the first three.
#[derive(Debug)]
enum Inner {
    Closed,
    /// The next one to come probes.
    Suspicious,
    /// A probe is under way.
    Probing,
    Open {
        until: Instant,
    },
    /// A probe is under way, and nothing else.
    HalfOpen,
}

/// A call that is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    /// When.
    pub era: Era,
    /// Whether whoever makes it has to probe first.
    pub probes: bool,
}

/// Which time between two openings a call was let through in. What becomes of it says nothing about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Era(u64);

#[derive(Debug)]
struct Memory {
    inner: Inner,
    era: Era,
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
        Self(Mutex::new(Memory { inner: Inner::Closed, era: Era::default(), consecutive: 0, calls }))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it lets through.
    pub fn state(&self, now: Instant) -> State {
        let memory = self.memory();
        match memory.inner {
            Inner::Closed | Inner::Suspicious | Inner::Probing => State::Closed,
            Inner::Open { .. } if memory.open_for(now).is_some() => State::Open,
            Inner::Open { .. } | Inner::HalfOpen => State::HalfOpen,
        }
    }

    /// For how long it will let nothing through.
    pub fn open_for(&self, now: Instant) -> Option<Duration> {
        self.memory().open_for(now)
    }

    /// Lets a call through, which then has to be judged, and perhaps a probe before it, or says how long there will
    /// be none.
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

    /// Takes note of how a probe of that era ended. Answers the new state when that is another one.
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

    /// Takes note of how a call of that era ended.
    pub fn judge(&self, era: Era, verdict: Verdict, now: Instant) {
        let mut memory = self.memory();
        // Whoever was let through before it opened has nothing to say any more.
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
