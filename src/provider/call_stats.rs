//! Call statistics of one provider since the start: results and latency, for the overview and the
//! metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::bulkhead::State;

/// Upper bounds of the latency histogram, in milliseconds. Slower calls are counted in one more
/// bucket.
pub const BOUNDS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_000, 3_000, 5_000];

#[derive(Debug, Default)]
pub(super) struct CallCounters {
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
    latency: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

#[derive(Debug, Clone, Default)]
pub struct CallStats {
    /// Calls by result: `answered`, `refused` or the class of the failure.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Calls in each bucket of [`BOUNDS`] and in the one above; not cumulative.
    pub latency: [u64; BOUNDS.len() + 1],
    pub total: Duration,
    pub breaker: State,
    /// True if most of the latest verifications, whatever their means, got no usable answer; `None`
    /// if there were too few.
    pub failing: Option<bool>,
}

impl CallCounters {
    pub fn record_call(&self, outcome: &'static str, took: Duration) {
        let milliseconds = took.as_millis();
        let bucket = BOUNDS
            .iter()
            .position(|bound| milliseconds <= u128::from(*bound))
            .unwrap_or(BOUNDS.len());
        self.latency[bucket].fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
        self.count(outcome);
    }

    pub fn count(&self, outcome: &'static str) {
        *self
            .outcomes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(outcome)
            .or_default() += 1;
    }

    pub fn stats(&self, breaker: State) -> CallStats {
        CallStats {
            outcomes: self
                .outcomes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            latency: std::array::from_fn(|bucket| self.latency[bucket].load(Ordering::Relaxed)),
            total: Duration::from_micros(self.microseconds.load(Ordering::Relaxed)),
            breaker,
            failing: None,
        }
    }
}

impl CallStats {
    /// Returns the latency, in ms, that `percent` % of the calls stayed below; `None` above the
    /// last bucket or without calls.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.latency.iter().sum();
        let rank = all.checked_mul(percent)?.div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.latency.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        BOUNDS.get(bucket).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_outcome_and_by_how_long_they_took() {
        let counters = CallCounters::default();
        assert_eq!(counters.stats(State::Closed).percentile(50), None);
        for milliseconds in [1, 5, 6, 90, 9_000] {
            counters.record_call("answered", Duration::from_millis(milliseconds));
        }
        counters.count("no_place");
        let stats = counters.stats(State::Open);
        assert_eq!(
            stats
                .outcomes
                .iter()
                .map(|(name, count)| (*name, *count))
                .collect::<Vec<_>>(),
            [("answered", 5), ("no_place", 1)]
        );
        assert_eq!(stats.latency, [2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(stats.percentile(50), Some(10));
        assert_eq!(
            (stats.percentile(80), stats.percentile(95)),
            (Some(100), None)
        );
        assert_eq!(stats.total, Duration::from_millis(9_102));
    }
}
