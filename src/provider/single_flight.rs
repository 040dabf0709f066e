//! Single flight: concurrent calls for the same token share one answer. Phones retry, and providers have
//! quotas.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The SHA-256 of a token.
pub(super) type Key = [u8; 32];

/// The calls under way.
#[derive(Debug)]
pub(super) struct SingleFlight<T>(Mutex<HashMap<Key, watch::Receiver<Option<T>>>>);

/// Removes a call from the map, also if its caller was cancelled.
struct RemoveOnDrop<'a, T> {
    calls: &'a SingleFlight<T>,
    key: Key,
}

impl<T> Drop for RemoveOnDrop<'_, T> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.key);
    }
}

impl<T> SingleFlight<T> {
    pub fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Receiver<Option<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Returns the answer of the call under way for this key, or makes the call.
    pub async fn ask<F: Future<Output = T>>(&self, key: Key, call: impl FnOnce() -> F) -> T {
        loop {
            let (answer, mut waiting) = {
                let mut calls = self.lock();
                if let Some(waiting) = calls.get(&key) {
                    (None, waiting.clone())
                } else {
                    let (answer, waiting) = watch::channel(None);
                    calls.insert(key, waiting.clone());
                    (Some(answer), waiting)
                }
            };
            if let Some(answer) = answer {
                let remove = RemoveOnDrop { calls: self, key };
                let value = call().await;
                // Requests from now on start a new call.
                drop(remove);
                answer.send_replace(Some(value.clone()));
                return value;
            }
            // The sender is dropped if its caller was cancelled. Then one of those who wait makes the call.
            if let Ok(answer) = waiting.wait_for(Option::is_some).await
                && let Some(value) = answer.as_ref()
            {
                return value.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn who_asks_the_same_at_once_shares_one_call_and_who_asks_later_makes_another() {
        let (flight, calls, gate) = (SingleFlight::new(), AtomicU32::new(0), Semaphore::new(0));
        let ask = |key| {
            flight.ask([key; 32], || async {
                gate.acquire().await.unwrap().forget();
                calls.fetch_add(1, Ordering::Relaxed) + 1
            })
        };
        let others = async { tokio::join!(ask(1), ask(1), ask(2)) };
        let (first, others, ()) = tokio::join!(ask(1), others, async { gate.add_permits(2) });
        assert_eq!((first, others.0, others.1), (first, first, first));
        assert_ne!(others.2, first);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        gate.add_permits(1);
        assert_eq!(ask(1).await, 3);
        assert!(flight.lock().is_empty());
    }

    #[tokio::test]
    async fn when_the_one_who_asks_goes_away_another_asks_instead() {
        let flight = SingleFlight::new();
        let mut gone = Box::pin(flight.ask([1; 32], std::future::pending::<u32>));
        let mut waits = Box::pin(flight.ask([1; 32], || async { 7 }));
        for future in [&mut gone as &mut (dyn Future<Output = u32> + Unpin), &mut waits] {
            assert!(futures_poll(future).await.is_none());
        }
        drop(gone);
        assert_eq!(waits.await, 7);
    }

    /// Polls once.
    async fn futures_poll(mut future: &mut (dyn Future<Output = u32> + Unpin)) -> Option<u32> {
        std::future::poll_fn(|context| match std::pin::Pin::new(&mut future).poll(context) {
            std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
