//! The answer cache, which the operator turns on with `verify_cache`. Answers are stored by the token's
//! SHA-256 and never past its `exp`. A refusal is never cached. `single_flight.rs` says why it is written by hand.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::single_flight::Key;

const CAPACITY: usize = 10_000;

#[derive(Debug)]
pub(super) struct AnswerCache<T> {
    /// Seconds for which an answer is cached.
    lifetime: i64,
    entries: Mutex<Entries<T>>,
}

#[derive(Debug)]
struct Entries<T> {
    answers: HashMap<Key, (i64, T)>,
    /// The same keys, the oldest first.
    order: VecDeque<(i64, Key)>,
}

impl<T: Clone> AnswerCache<T> {
    pub fn new(lifetime: u32) -> Self {
        let entries = Entries { answers: HashMap::new(), order: VecDeque::new() };
        Self { lifetime: lifetime.into(), entries: Mutex::new(entries) }
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, key: &Key, now: i64) -> Option<T> {
        if self.lifetime == 0 {
            return None;
        }
        let entries = self.lock();
        entries.answers.get(key).filter(|(until, _)| now < *until).map(|(_, answer)| answer.clone())
    }

    pub fn insert(&self, key: Key, answer: T, expires_at: i64, now: i64) {
        let until = expires_at.min(now.saturating_add(self.lifetime));
        if until <= now {
            return;
        }
        let mut entries = self.lock();
        let stale = now.saturating_add(self.lifetime);
        // The queue is in order of insertion, which is the order of expiry except for tokens that expire
        // sooner.
        while let Some(&(end, oldest)) = entries.order.front() {
            if now < end && end <= stale && entries.order.len() < CAPACITY {
                break;
            }
            entries.order.pop_front();
            if entries.answers.get(&oldest).is_some_and(|(until, _)| *until <= end) {
                entries.answers.remove(&oldest);
            }
        }
        entries.order.push_back((now.saturating_add(self.lifetime), key));
        entries.answers.insert(key, (until, answer));
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
        let cache = AnswerCache::new(60);
        cache.insert(key(1), "long", 10_000, 1_000);
        cache.insert(key(2), "short", 1_010, 1_000);
        cache.insert(key(3), "expired", 1_000, 1_000);
        assert_eq!(cache.get(&key(1), 1_059), Some("long"));
        assert_eq!(cache.get(&key(1), 1_060), None);
        assert_eq!((cache.get(&key(2), 1_009), cache.get(&key(2), 1_010)), (Some("short"), None));
        assert_eq!(cache.get(&key(3), 1_000), None);
    }

    #[test]
    fn nothing_is_kept_unless_it_is_asked_for() {
        let cache = AnswerCache::new(0);
        cache.insert(key(1), (), 10_000, 1_000);
        assert_eq!(cache.get(&key(1), 1_000), None);
        assert!(cache.lock().answers.is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_over_goes() {
        let cache = AnswerCache::new(60);
        for number in 0..3 * CAPACITY {
            cache.insert(key(number), number, 10_000, 1_000);
        }
        assert_eq!(cache.lock().answers.len(), CAPACITY);
        assert_eq!(cache.get(&key(3 * CAPACITY - 1), 1_000), Some(3 * CAPACITY - 1));
        cache.insert(key(0), 0, 10_000, 1_060);
        assert_eq!(cache.lock().answers.len(), 1);
        assert_eq!(cache.lock().order.len(), 1);
    }
}
