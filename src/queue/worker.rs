//! The loop that takes the due rows of one queue and works on several of them at a time.

use std::time::Duration;
use std::{iter, mem};

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::tasks::Stop;
use crate::database::Database;

/// Failures in a row after which one row is tried at a time.
const TROUBLE: u32 = 16;
/// The time without a success after which a success is the end of an outage, and not of a few
/// failures among others.
const OUTAGE: Duration = Duration::from_mins(1);
/// The time for which an attempt that has ended waits for others, so that they share the
/// statements. A receiver that is slow loses little by it.
const MOMENT: Duration = Duration::from_millis(10);

pub trait Worker: Clone + Send + Sync + 'static {
    /// A row that this instance has a lease of.
    type Row: Send + 'static;
    /// The end of an attempt, which is still to be recorded.
    type Ended: Send + 'static;

    /// The rows that are worked on at a time.
    const IN_FLIGHT: usize;
    /// The pause before the queue is read again, if it had nothing or its work fails.
    const PAUSE: Duration;
    /// The time at the end for the attempts that were begun.
    const GRACE: Duration;

    fn database(&self) -> &Database;

    /// Takes up to `room` due rows, at least one. Logs an error, and then takes none.
    fn claim(&mut self, room: usize) -> impl Future<Output = Vec<Self::Row>> + Send;

    fn attempt(self, row: Self::Row) -> impl Future<Output = Self::Ended> + Send;

    /// Returns true if the attempt failed in a way that others may fail, too.
    fn has_failed(_: &Self::Ended) -> bool {
        false
    }

    /// Takes note of the end of an outage: of the first success after the start, after sixteen
    /// failures in a row, or after a minute of failures alone.
    fn recover(&mut self) {}

    /// Records the ends of attempts, at least of one.
    fn settle(&self, _: Vec<Self::Ended>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Logs that attempts have not ended within [`GRACE`](Self::GRACE).
    fn abandon(&self);
}

/// Works until it is stopped or the database is closed.
pub async fn keep_working<W: Worker>(mut worker: W, mut stop: Stop) {
    let mut in_flight = JoinSet::new();
    let mut ended = Vec::new();
    let mut failures = 0;
    // The time since which all attempts fail, and whether attempts succeeded steadily before.
    let mut failing_since = None;
    let mut steady = false;
    while !worker.database().is_closed() && !*stop.borrow() {
        let most = if failures < TROUBLE { W::IN_FLIGHT } else { 1 };
        let room = most.saturating_sub(in_flight.len());
        let claimed = if room > 0 {
            worker.claim(room).await
        } else {
            Vec::new()
        };
        // A full claim may have left others.
        let more = claimed.len() == room && failures < TROUBLE;
        for row in claimed {
            in_flight.spawn(worker.clone().attempt(row));
        }
        tokio::select! {
            // It fails only if the sender is gone, which is the end as well.
            _ = stop.changed() => {}
            Some(done) = in_flight.join_next(), if failures < TROUBLE => ended.push(done.ok()),
            () = sleep(W::PAUSE), if !more => {}
        }
        if !ended.is_empty() {
            let others = async {
                while in_flight.len() > W::IN_FLIGHT / 2
                    && let Some(done) = in_flight.join_next().await
                {
                    ended.push(done.ok());
                }
            };
            // The next claim fills the places that are free by then.
            let _ = timeout(MOMENT, others).await;
        }
        ended.extend(iter::from_fn(|| in_flight.try_join_next()).map(Result::ok));
        for one in &ended {
            // A panic is in the log already.
            let failed = one.as_ref().is_none_or(W::has_failed);
            if failed {
                failures = failures.saturating_add(1);
                let since: &mut Instant = failing_since.get_or_insert_with(Instant::now);
                steady &= failures < TROUBLE && since.elapsed() < OUTAGE;
            } else {
                if !mem::replace(&mut steady, true) {
                    worker.recover();
                }
                (failures, failing_since) = (0, None);
            }
        }
        settle(&worker, ended.drain(..).flatten().collect()).await;
    }
    let begun = async {
        while let Some(done) = in_flight.join_next().await {
            let others = iter::from_fn(|| in_flight.try_join_next());
            settle(&worker, iter::once(done).chain(others).flatten().collect()).await;
        }
    };
    if timeout(W::GRACE, begun).await.is_err() {
        worker.abandon();
    }
}

async fn settle<W: Worker>(worker: &W, ended: Vec<W::Ended>) {
    if !ended.is_empty() {
        worker.settle(ended).await;
    }
}
