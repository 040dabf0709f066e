//! The answer cache, which the operator turns on with `verify_cache`. Answers are stored by the token's
//! SHA-256 and never past its `exp`. A refusal is never cached.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::flights::Key;

/// The most answers that are cached.
const CAPACITY: usize = 10_000;

/// The cached answers of one provider.
#[derive(Debug)]
pub(super) struct Verdicts<T> {
    /// Seconds for which an answer is cached.
    lifetime: i64,
    kept: Mutex<Kept<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    answers: HashMap<Key, (i64, T)>,
    /// The same keys, the oldest first.
    order: VecDeque<(i64, Key)>,
}

impl<T: Clone> Verdicts<T> {
    pub fn new(lifetime: u32) -> Self {
        let kept = Kept { answers: HashMap::new(), order: VecDeque::new() };
        Self { lifetime: lifetime.into(), kept: Mutex::new(kept) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached answer for a token, if it has not expired.
    pub fn get(&self, key: &Key, now: i64) -> Option<T> {
        if self.lifetime == 0 {
            return None;
        }
        let kept = self.lock();
        kept.answers.get(key).filter(|(until, _)| now < *until).map(|(_, answer)| answer.clone())
    }

    /// Caches an answer about a token that expires at `expires_at`.
    pub fn keep(&self, key: Key, answer: T, expires_at: i64, now: i64) {
        let until = expires_at.min(now.saturating_add(self.lifetime));
        if until <= now {
            return;
        }
        let mut kept = self.lock();
        let stale = now.saturating_add(self.lifetime);
        // The queue is in order of insertion, which is the order of expiry except for tokens that expire
        // sooner.
        while let Some(&(end, oldest)) = kept.order.front() {
            if now < end && end <= stale && kept.order.len() < CAPACITY {
                break;
            }
            kept.order.pop_front();
            if kept.answers.get(&oldest).is_some_and(|(until, _)| *until <= end) {
                kept.answers.remove(&oldest);
            }
        }
        kept.order.push_back((now.saturating_add(self.lifetime), key));
        kept.answers.insert(key, (until, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn an_answer_is_good_for_its_lifetime_and_never_past_the_tokens() {
        let verdicts = Verdicts::new(60);
        verdicts.keep(key(1), "long", 10_000, 1_000);
        verdicts.keep(key(2), "short", 1_010, 1_000);
        verdicts.keep(key(3), "expired", 1_000, 1_000);
        assert_eq!(verdicts.get(&key(1), 1_059), Some("long"));
        assert_eq!(verdicts.get(&key(1), 1_060), None);
        assert_eq!((verdicts.get(&key(2), 1_009), verdicts.get(&key(2), 1_010)), (Some("short"), None));
        assert_eq!(verdicts.get(&key(3), 1_000), None);
    }

    #[test]
    fn nothing_is_kept_unless_it_is_asked_for() {
        let verdicts = Verdicts::new(0);
        verdicts.keep(key(1), (), 10_000, 1_000);
        assert_eq!(verdicts.get(&key(1), 1_000), None);
        assert!(verdicts.lock().answers.is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_over_goes() {
        let verdicts = Verdicts::new(60);
        for number in 0..3 * CAPACITY {
            verdicts.keep(key(number), number, 10_000, 1_000);
        }
        assert_eq!(verdicts.lock().answers.len(), CAPACITY);
        assert_eq!(verdicts.get(&key(3 * CAPACITY - 1), 1_000), Some(3 * CAPACITY - 1));
        verdicts.keep(key(0), 0, 10_000, 1_060);
        assert_eq!(verdicts.lock().answers.len(), 1);
        assert_eq!(verdicts.lock().order.len(), 1);
    }
}
