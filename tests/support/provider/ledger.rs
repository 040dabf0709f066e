//! Counts and keeps what happened, and lets tests wait for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::recorded::Recorded;

/// A wait in a test fails after this long instead of hanging the whole run.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The counters of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted so far.
    pub connections: usize,
    /// Connections open now.
    pub open: usize,
    /// Complete requests so far.
    pub calls: usize,
    /// Requests whose answer is not out yet; one whose client left counts until that is noticed.
    pub in_flight: usize,
    /// The most requests in flight at one time.
    pub in_flight_max: usize,
    /// Requests dealt with to the end of their behaviour.
    pub answered: usize,
    /// Requests whose client left first.
    pub abandoned: usize,
    /// Requests that were not HTTP, or too large; they are not recorded.
    pub malformed: usize,
}

/// The counters and the requests behind them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    counts: watch::Sender<Counts>,
    requests: Mutex<Vec<Recorded>>,
}

impl Ledger {
    pub(super) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.kept().clone()
    }

    pub(super) async fn until(&self, condition: impl FnMut(&Counts) -> bool) -> Counts {
        wait(&self.counts, "the provider's counters", condition).await
    }

    /// Counts a connection, which stays open until the value is dropped.
    pub(super) fn connected(self: &Arc<Self>) -> Open {
        let mut number = 0;
        self.counts.send_modify(|counts| {
            counts.connections += 1;
            counts.open += 1;
            number = counts.connections;
        });
        let ledger = Arc::clone(self);
        Open { ledger, number }
    }

    /// Keeps a request, which is in flight until the value is dropped.
    pub(super) fn arrived(self: &Arc<Self>, request: Recorded) -> InFlight {
        // Kept before it is counted: whoever sees the count finds the request.
        self.kept().push(request);
        self.counts.send_modify(|counts| {
            counts.calls += 1;
            counts.in_flight += 1;
            counts.in_flight_max = counts.in_flight_max.max(counts.in_flight);
        });
        InFlight { ledger: Arc::clone(self), answered: false }
    }

    pub(super) fn malformed(&self) {
        self.counts.send_modify(|counts| counts.malformed += 1);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Open {
    ledger: Arc<Ledger>,
    pub(super) number: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.ledger.counts.send_modify(|counts| counts.open -= 1);
    }
}

/// A request on its way; dropped unanswered, it counts as abandoned.
#[derive(Debug)]
pub(super) struct InFlight {
    ledger: Arc<Ledger>,
    answered: bool,
}

impl InFlight {
    /// To be called just before the last byte leaves: the client's next request must not overlap.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.ledger.counts.send_modify(|counts| {
            counts.in_flight -= 1;
            if self.answered {
                counts.answered += 1;
            } else {
                counts.abandoned += 1;
            }
        });
    }
}

/// Waits until a watched value satisfies the condition; the sender outlives the wait.
pub(super) async fn wait<T: Copy + std::fmt::Debug>(
    sender: &watch::Sender<T>,
    what: &str,
    condition: impl FnMut(&T) -> bool,
) -> T {
    let mut receiver = sender.subscribe();
    let found = tokio::time::timeout(TIMEOUT, receiver.wait_for(condition)).await;
    let found = found.map(|value| value.map(|value| *value));
    match found {
        Ok(Ok(value)) => value,
        _ => panic!("{what} never got there; they are {:?}", *sender.borrow()),
    }
}
