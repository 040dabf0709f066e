//! Group commit: items that arrive together go to PostgreSQL in one statement.
//!
//! Callers submit one item each and await their own result. A few lanes take all waiting items and
//! run one set-based statement for them. A lane never waits for more items: a single item runs at
//! once, and under load batches form while the lanes are busy.
//!
//! A lane keeps its connection while items come, because the driver sends a ping and spawns a task
//! whenever a connection goes back to the pool: that would double how often PostgreSQL has to wake
//! up.
//!
//! A batch either succeeds for all of its items or returns no result for any. Then each caller runs
//! its own item alone, with the retries, deadlines and errors of the single path, so one bad item
//! never fails another. But if the lane got no connection in time, each caller gets that error:
//! alone it would wait for as long again. `batch-aint-one` does not fit: it returns one error to
//! the whole batch and does not notice cancelled callers.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

use crate::background;
use crate::database::connections::Database;
use crate::database::error::Error;
use crate::database::executor::Checkout;
use crate::database::health::LIMIT;
use crate::database::health::is_sound;

/// Maximum number of items in one statement.
const BATCH: usize = 64;
/// Maximum number of waiting items. At some thousand a second, a later item would wait longer than
/// a request may take.
const QUEUE: usize = 4096;

/// The time without work after which a lane returns its connection.
const REST: Duration = Duration::from_secs(1);
/// The longest time for which a lane keeps a connection. It then returns the connection, and the
/// pool closes it if it is too old.
const TERM: Duration = Duration::from_mins(1);

/// Target of the tracing events from which the metrics of batches are taken.
pub const BATCHES: &str = "vestibule::batch";

/// Emits the time for which a caller waited, also if the caller is cancelled.
struct Call {
    name: &'static str,
    since: Instant,
}

impl Drop for Call {
    fn drop(&mut self) {
        let answered = self.since.elapsed().as_secs_f64();
        tracing::trace!(target: BATCHES, summary = self.name, answered_secs = answered);
    }
}

struct Waiting<I, O> {
    item: I,
    since: Instant,
    answer: oneshot::Sender<Result<Option<O>, Error>>,
}

type Queue<I, O> = Arc<Mutex<mpsc::Receiver<Waiting<I, O>>>>;

/// The sender to a group of lanes.
#[derive(Debug)]
pub struct Lanes<I, O> {
    sender: mpsc::Sender<Waiting<I, O>>,
    /// The purpose of the statement, for traces.
    name: &'static str,
}

impl<I: Send + 'static, O: Send + 'static> Lanes<I, O> {
    /// Opens lanes that run `statement`; traces have `name` for it. It gets items and returns as
    /// many results in the same order; `None` sends an item to the single path. It also gets the
    /// value that it returned with the results before, or the default after an error or a pause of
    /// the lane. The lanes end when this value is dropped and all waiting items are done.
    pub fn open<K, S, F>(name: &'static str, count: u32, statement: S) -> Self
    where
        K: Keep,
        S: Fn(K, Vec<I>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<(K, Vec<Option<O>>), Error>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let queue = Arc::new(Mutex::new(receiver));
        for _ in 0..count {
            let queue = queue.clone();
            let statement = statement.clone();
            background::spawn(name, move || lane(queue.clone(), statement.clone()));
        }
        Self { sender, name }
    }

    /// Returns the result for an item, or `None` if the caller has to run it alone.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] if too many items are waiting, or the lane got no connection
    /// in time.
    pub async fn submit(&self, item: I) -> Result<Option<O>, Error> {
        let (answer, answered) = oneshot::channel();
        let call = Call {
            name: self.name,
            since: Instant::now(),
        };
        let waiting = Waiting {
            item,
            since: call.since,
            answer,
        };
        self.sender.try_send(waiting).map_err(|_| Error::late())?;
        // A lane that panics sends no result.
        answered.await.unwrap_or(Ok(None))
    }

    /// Returns the result for an item from a batch, or else the result of `alone`, which runs the
    /// item by itself.
    ///
    /// # Errors
    /// As [`Self::submit`], and the errors of `alone`.
    pub async fn run(
        &self,
        item: I,
        alone: impl Future<Output = Result<O, Error>>,
    ) -> Result<O, Error> {
        match self.submit(item).await? {
            Some(result) => Ok(result),
            None => alone.await,
        }
    }
}

async fn lane<I, O, K, S, F>(queue: Queue<I, O>, statement: S)
where
    K: Keep,
    S: Fn(K, Vec<I>) -> F,
    F: Future<Output = Result<(K, Vec<Option<O>>), Error>>,
{
    let mut batch = Vec::with_capacity(BATCH);
    let mut kept = K::default();
    loop {
        let next = async |batch: &mut Vec<_>| queue.lock().await.recv_many(batch, BATCH).await;
        let received = if let Ok(received) = timeout(REST, next(&mut batch)).await {
            received
        } else {
            mem::take(&mut kept).give_back().await;
            next(&mut batch).await
        };
        if received == 0 {
            return;
        }
        // Items of cancelled callers are dropped.
        batch.retain(|waiting| !waiting.answer.is_closed());
        let Some(first) = batch.first() else { continue };
        let waited = first.since.elapsed().as_secs_f64();
        tracing::trace!(target: BATCHES, batch_size = batch.len(), waited_secs = waited);
        let (items, answers): (Vec<_>, Vec<_>) = batch
            .drain(..)
            .map(|waiting| (waiting.item, waiting.answer))
            .unzip();
        let done = timeout(LIMIT, statement(mem::take(&mut kept), items)).await;
        match done.unwrap_or_else(|_| Err(Error::late())) {
            Ok((keep, results)) => {
                kept = keep;
                for (answer, result) in answers.into_iter().zip(results) {
                    // The caller may have been cancelled meanwhile.
                    let _ = answer.send(Ok(result));
                }
            }
            Err(Error::Unavailable(sqlx::Error::PoolTimedOut)) => {
                // Items that came meanwhile have waited, too. If another lane holds the lock, no
                // caller waits.
                let mut queue = queue.try_lock();
                let waiting = std::iter::from_fn(|| queue.as_mut().ok()?.try_recv().ok());
                for answer in answers
                    .into_iter()
                    .chain(waiting.map(|waiting| waiting.answer))
                {
                    let _ = answer.send(Err(Error::late()));
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a batch failed; its items are retried one by one");
            }
        }
    }
}

/// A value that a lane keeps from one statement to the next.
pub trait Keep: Default + Send + 'static {
    /// Disposes of the value, since no items come.
    fn give_back(self) -> impl Future<Output = ()> + Send;
}

/// A connection of a lane.
#[derive(Debug)]
pub struct Held {
    pub connection: Checkout,
    /// The time at which the pool handed it out.
    since: Instant,
    /// The time since which it has been idle.
    rests: Instant,
}

/// The connection that a lane keeps from one statement to the next, if any.
pub type Kept = Option<Held>;

impl Held {
    /// Returns the kept connection, or a connection of the pool.
    ///
    /// # Errors
    /// Returns the pool's error if it has no connection in time.
    pub async fn again(mut kept: Kept, database: &Database) -> Result<Self, Error> {
        if kept
            .as_ref()
            .is_some_and(|held| held.since.elapsed() >= TERM)
        {
            mem::take(&mut kept).give_back().await;
        }
        if let Some(mut held) = kept {
            let rested = held.rests.elapsed();
            if database
                .health()
                .is_usable(&mut held.connection, rested)
                .await
            {
                return Ok(held);
            }
        }
        let connection = Checkout::of(database.lanes(), database.health()).await?;
        let now = Instant::now();
        Ok(Self {
            connection,
            since: now,
            rests: now,
        })
    }

    /// Keeps the connection for the next statement. After an error it goes back to the pool, which
    /// closes it if it is broken.
    ///
    /// # Errors
    /// Returns the statement's error.
    pub fn keep<T>(
        mut self,
        results: Result<T, Error>,
        database: &Database,
    ) -> Result<(Kept, T), Error> {
        match results {
            Ok(results) => {
                self.rests = Instant::now();
                Ok((Some(self), results))
            }
            Err(error) => {
                database.note(&error);
                self.connection.release();
                Err(error)
            }
        }
    }
}

impl Keep for Kept {
    /// Gives the connection back to the pool. It is checked first, because its server may have gone
    /// since its last response, and the pool has no time limit for its ping.
    async fn give_back(self) {
        if let Some(mut held) = self
            && is_sound(&mut held.connection).await.unwrap_or(false)
        {
            held.connection.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;

    impl Keep for () {
        async fn give_back(self) {}
    }

    /// Opens one lane that records each batch's size, and waits for a permit before it doubles the
    /// numbers.
    fn doubling(
        gate: Arc<Semaphore>,
        batches: Arc<std::sync::Mutex<Vec<usize>>>,
    ) -> Lanes<usize, usize> {
        Lanes::open("doubling", 1, move |(), items: Vec<usize>| {
            batches.lock().unwrap().push(items.len());
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                assert!(!items.contains(&13), "a bug");
                if items.contains(&7) {
                    return Err(Error::Raced(None));
                }
                if items.contains(&9) {
                    return Err(Error::late());
                }
                Ok((
                    (),
                    items
                        .into_iter()
                        .map(|item| (item != 3).then_some(2 * item))
                        .collect(),
                ))
            }
        })
    }

    #[tokio::test]
    async fn lone_items_run_at_once_and_waiting_items_share_a_batch() {
        let gate = Arc::new(Semaphore::new(0));
        let batches = Arc::default();
        let lanes = Arc::new(doubling(gate.clone(), Arc::clone(&batches)));
        let mut callers = JoinSet::new();
        let submit = |item| {
            let lanes = lanes.clone();
            async move { (item, lanes.submit(item).await.unwrap()) }
        };
        callers.spawn(submit(100));
        while batches.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        for item in 0..10 {
            callers.spawn(submit(if [3, 7, 9].contains(&item) {
                50 + item
            } else {
                item
            }));
        }
        tokio::task::yield_now().await;
        gate.add_permits(2);
        for (item, result) in callers.join_all().await {
            assert_eq!(result, Some(2 * item));
        }
        assert_eq!(*batches.lock().unwrap(), [1, 10]);
    }

    #[tokio::test]
    async fn after_a_failed_or_panicking_batch_callers_run_alone() {
        let lanes = Arc::new(doubling(Arc::new(Semaphore::new(100)), Arc::default()));
        for bad in [7, 13] {
            let mut callers = JoinSet::new();
            for item in [bad, 1, 2] {
                let lanes = lanes.clone();
                callers.spawn(async move { lanes.submit(item).await.unwrap() });
            }
            assert_eq!(callers.join_all().await, [None; 3], "{bad}");
            assert_eq!(lanes.submit(4).await.unwrap(), Some(8), "after {bad}");
        }
        assert_eq!(
            lanes.submit(3).await.unwrap(),
            None,
            "a result of none is the caller's own way, too"
        );
    }

    #[tokio::test]
    async fn without_a_connection_the_batch_and_all_waiting_callers_fail() {
        let gate = Arc::new(Semaphore::new(0));
        let batches = Arc::default();
        let lanes = Arc::new(doubling(gate.clone(), Arc::clone(&batches)));
        let mut callers = JoinSet::new();
        for item in [9, 1, 2] {
            let caller = lanes.clone();
            callers.spawn(async move { caller.submit(item).await.is_err() });
            while batches.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        }
        while lanes.sender.capacity() > QUEUE - 2 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
        assert_eq!(callers.join_all().await, [true; 3]);
        assert_eq!(lanes.submit(4).await.unwrap(), Some(8), "afterwards");
        assert_eq!(*batches.lock().unwrap(), [1, 1]);
    }

    #[tokio::test]
    async fn cancelled_callers_are_skipped_and_a_full_queue_rejects() {
        let gate = Arc::new(Semaphore::new(0));
        let batches = Arc::default();
        let lanes = Arc::new(doubling(gate.clone(), Arc::clone(&batches)));
        let mut callers = JoinSet::new();
        for item in 0..=QUEUE {
            let caller = lanes.clone();
            callers.spawn(async move { caller.submit(item).await.is_ok() });
            tokio::task::yield_now().await;
        }
        // One item is in the lane, and the others fill the queue.
        assert!(matches!(lanes.submit(1).await, Err(Error::Unavailable(_))));
        callers.abort_all();
        while callers.join_next().await.is_some() {}
        gate.add_permits(100);
        while lanes.submit(5).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            batches.lock().unwrap().iter().sum::<usize>(),
            2,
            "the first, and the last"
        );
    }

    #[tokio::test]
    async fn what_waits_is_done_before_the_lanes_end() {
        let done = Arc::new(AtomicUsize::new(0));
        let counted = done.clone();
        let lanes = Lanes::open("counting", 2, move |(), items: Vec<()>| {
            counted.fetch_add(items.len(), Ordering::SeqCst);
            async move { Ok(((), items.into_iter().map(Some).collect())) }
        });
        let answers: Vec<_> = (0..1000)
            .map(|_| {
                let (answer, answered) = oneshot::channel();
                let waiting = Waiting {
                    item: (),
                    since: Instant::now(),
                    answer,
                };
                assert!(lanes.sender.try_send(waiting).is_ok());
                answered
            })
            .collect();
        drop(lanes);
        for answered in answers {
            assert_eq!(answered.await.unwrap().unwrap(), Some(()));
        }
        assert_eq!(done.load(Ordering::SeqCst), 1000);
    }
}
