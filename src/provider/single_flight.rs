//! Single flight: concurrent calls for the same token share one answer. Phones retry, and providers
//! have quotas.
//!
//! It is written by hand. `moka` coalesces as well, but an unshared call takes it 13,700
//! instructions instead of 1,800, and it adds 190 KB to the program.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

/// The SHA-256 of a token.
pub(super) type Key = [u8; 32];

type Calls<T> = HashMap<Key, Arc<OnceCell<T>>>;

/// The calls under way.
#[derive(Debug)]
pub(super) struct SingleFlight<T>(Mutex<Calls<T>>);

/// Removes a call from the map once it has its answer, or once its last caller was cancelled.
struct RemoveOnDrop<'a, T> {
    flight: &'a SingleFlight<T>,
    key: Key,
}

impl<T> Drop for RemoveOnDrop<'_, T> {
    fn drop(&mut self) {
        let mut calls = self.flight.lock();
        let ended = |call: &Arc<OnceCell<T>>| call.initialized() || Arc::strong_count(call) == 1;
        if calls.get(&self.key).is_some_and(ended) {
            calls.remove(&self.key);
        }
    }
}

impl<T> SingleFlight<T> {
    pub fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Calls<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Returns the response of the call under way for this key, or makes the call. If the caller
    /// that makes it is cancelled, a waiting caller makes it instead.
    pub async fn ask<F: Future<Output = T>>(&self, key: Key, call: impl FnOnce() -> F) -> T {
        // It is declared before the reference to the call, so it is dropped after that.
        let _remove = RemoveOnDrop { flight: self, key };
        let under_way = Arc::clone(self.lock().entry(key).or_default());
        under_way.get_or_init(call).await.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn only_concurrent_callers_of_the_same_key_share_a_call() {
        let flight = SingleFlight::new();
        let calls = AtomicU32::new(0);
        let gate = Semaphore::new(0);
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
        for future in [
            &mut gone as &mut (dyn Future<Output = u32> + Unpin),
            &mut waits,
        ] {
            assert!(poll_once(future).await.is_none());
        }
        drop(gone);
        assert_eq!(waits.await, 7);
        assert!(flight.lock().is_empty());
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_call_whose_callers_all_went_away() {
        let flight = SingleFlight::new();
        let mut callers =
            [(); 2].map(|()| Box::pin(flight.ask([1; 32], std::future::pending::<u32>)));
        for caller in &mut callers {
            assert!(poll_once(caller).await.is_none());
        }
        let [first, second] = callers;
        drop(first);
        assert_eq!(flight.lock().len(), 1);
        drop(second);
        assert!(flight.lock().is_empty());
    }

    async fn poll_once(mut future: &mut (dyn Future<Output = u32> + Unpin)) -> Option<u32> {
        std::future::poll_fn(
            |context| match std::pin::Pin::new(&mut future).poll(context) {
                std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
                std::task::Poll::Pending => std::task::Poll::Ready(None),
            },
        )
        .await
    }
}
