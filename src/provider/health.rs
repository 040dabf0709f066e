//! The health of a provider, judged by its latest responses about users' tokens. The circuit
//! breaker's probe cannot show it: a provider may refuse a made-up token as it should, and fail for
//! genuine ones.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;

/// The number of calls that count, the latest ones, and the time for which each counts.
const LATEST: usize = 20;
const WINDOW: Duration = Duration::from_hours(1);
/// The fewest calls that allow a judgement.
const LEAST: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The time at which each call ended, and true if it had a usable answer.
    calls: VecDeque<(Instant, bool)>,
    /// The calls since the latest usable answer whose failure the token itself may have caused, and
    /// the time of the latest one.
    by_token: usize,
    by_token_at: Option<Instant>,
    /// True if the log says that the provider fails.
    told: bool,
}

impl Health {
    /// Takes the result of a verification into account. A refusal does not count: any client can
    /// have a token refused.
    pub fn record<T>(&self, provider: &str, result: &Result<T, Error>, now: Instant) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(_) => {
                inner.remember(true, now);
                inner.by_token = 0;
            }
            Err(Error::Refused(_)) => return,
            Err(Error::Unavailable(unavailable)) if unavailable.by_token => {
                inner.by_token = inner.by_token(now).saturating_add(1);
                inner.by_token_at = Some(now);
            }
            Err(Error::Unavailable(_)) => inner.remember(false, now),
        }
        let failing = inner.failing(now) == Some(true);
        if failing != inner.told {
            inner.told = failing;
            if failing {
                tracing::warn!(
                    provider,
                    "most sign-ins get no usable answer from the identity provider"
                );
            } else {
                tracing::info!(
                    provider,
                    "the identity provider answers most sign-ins again"
                );
            }
        }
    }

    /// Returns true if most of the latest calls had no usable answer, or `None` if too few calls
    /// were made to tell.
    pub fn failing(&self, now: Instant) -> Option<bool> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failing(now)
    }
}

impl Inner {
    fn remember(&mut self, usable: bool, now: Instant) {
        while self.calls.len() >= LATEST {
            self.calls.pop_front();
        }
        self.calls.push_back((now, usable));
    }

    fn by_token(&self, now: Instant) -> usize {
        if self.by_token_at.is_some_and(|at| within(at, now)) {
            self.by_token
        } else {
            0
        }
    }

    fn failing(&self, now: Instant) -> Option<bool> {
        let calls = || self.calls.iter().filter(|(ended, _)| within(*ended, now));
        let answered = calls().filter(|(_, usable)| *usable).count();
        let failed = calls().count() - answered;
        let by_token = self.by_token(now);
        if answered + failed + by_token < LEAST {
            return None;
        }
        // A crafted token can cause a response that makes no sense. Such failures count only if no
        // call has had a usable response.
        let failures = if answered == 0 {
            failed + by_token
        } else {
            failed
        };
        Some(failures >= LEAST && failures > answered)
    }
}

fn within(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) <= WINDOW
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Class, Unavailable};
    use super::*;
    use crate::domain::{Reason, Refusal};

    const ANSWERED: Result<(), Error> = Ok(());

    fn failed() -> Result<(), Error> {
        Err(Unavailable::new(Class::Status5xx).into())
    }

    fn by_token() -> Result<(), Error> {
        Err(Unavailable::new(Class::NotJson).by_token().into())
    }

    fn after(results: &[(usize, Result<(), Error>)], now: Instant) -> Health {
        let health = Health::default();
        for (times, result) in results {
            for _ in 0..*times {
                health.record("idp", result, now);
            }
        }
        health
    }

    #[test]
    fn most_of_the_latest_calls_decide_and_too_few_tell_nothing() {
        let now = Instant::now();
        let refused = || Err(Error::from(Refusal::new(Reason::InvalidToken, "")));
        for (results, expected) in [
            (vec![(4, failed())], None),
            (vec![(5, failed())], Some(true)),
            (vec![(4, ANSWERED)], None),
            (vec![(5, failed()), (5, ANSWERED)], Some(false)),
            (vec![(100, ANSWERED), (10, failed())], Some(false)),
            (vec![(100, ANSWERED), (11, failed())], Some(true)),
            (vec![(12, failed()), (100, refused())], Some(true)),
            (vec![(100, refused())], None),
            (vec![(5, by_token())], Some(true)),
            (vec![(1, ANSWERED), (1_000, by_token())], Some(false)),
            (vec![(1_000, by_token()), (5, ANSWERED)], Some(false)),
            (
                vec![(5, ANSWERED), (20, failed()), (11, ANSWERED)],
                Some(false),
            ),
        ] {
            assert_eq!(after(&results, now).failing(now), expected, "{results:?}");
        }
    }

    #[test]
    fn a_call_counts_for_an_hour() {
        let now = Instant::now();
        for results in [[(5, failed())], [(5, by_token())]] {
            let health = after(&results, now);
            assert_eq!(health.failing(now + WINDOW), Some(true));
            assert_eq!(
                health.failing(now + WINDOW + Duration::from_millis(1)),
                None
            );
        }
    }
}
