//! Counts and keeps what happened, and lets tests wait for it.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;

use super::recorded::Recorded;

/// A wait in a test fails after this long instead of hanging the whole run.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub connections: usize,
    pub calls: usize,
    /// Requests whose answer is not out yet; one whose client left counts until that is noticed.
    pub in_flight: usize,
    /// The most requests in flight at one time.
    pub in_flight_max: usize,
    /// Requests dealt with to the end of their behaviour.
    pub answered: usize,
    /// The bytes that clients took of ends that are repeated.
    pub repeated: usize,
}

/// The counters and the requests behind them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) counts: watch::Sender<Counts>,
    pub(super) requests: Mutex<Vec<Recorded>>,
}

impl Ledger {
    pub(super) fn connected(&self) {
        self.counts.send_modify(|counts| counts.connections += 1);
    }

    /// Keeps a request, which is in flight until it is answered or the value is dropped.
    pub(super) fn arrived(&self, request: Recorded) -> OnDrop<'_, Counts> {
        // Kept before it is counted: a test that sees the count finds the request.
        self.requests.lock().unwrap().push(request);
        self.counts.send_modify(|counts| {
            counts.calls += 1;
            counts.in_flight += 1;
            counts.in_flight_max = counts.in_flight_max.max(counts.in_flight);
        });
        OnDrop(&self.counts, |counts| counts.in_flight -= 1)
    }
}

/// A change to a watched value that is made when this is dropped.
pub(super) struct OnDrop<'a, T>(pub(super) &'a watch::Sender<T>, pub(super) fn(&mut T));

impl OnDrop<'_, Counts> {
    pub(super) fn answered(mut self) {
        self.1 = |counts| {
            counts.in_flight -= 1;
            counts.answered += 1;
        };
    }
}

impl<T> Drop for OnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.send_modify(self.1);
    }
}

/// Waits until a watched value satisfies the condition; the sender outlives the wait.
pub(super) async fn wait<T: std::fmt::Debug>(
    sender: &watch::Sender<T>,
    what: &str,
    condition: impl FnMut(&T) -> bool,
) {
    let mut receiver = sender.subscribe();
    let found = tokio::time::timeout(TIMEOUT, receiver.wait_for(condition))
        .await
        .is_ok();
    assert!(
        found,
        "{what} never got there; they are {:?}",
        *sender.borrow()
    );
}
