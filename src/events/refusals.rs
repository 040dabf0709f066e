//! Recording of refused sign-ins. A task writes them from a bounded queue, so that a flood of bad
//! tokens neither fills the memory nor delays callers with good ones. Anyone can invent tokens. So
//! only a few refusals per minute become events, which are kept for a year, if no provider vouched
//! for the token; the others are counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;

use crate::background;
use crate::database::Database;
use crate::domain::network;
use crate::events::record::{RefusedRequest, record_refusals};

const CAPACITY: usize = 1024;
const BATCH: usize = 64;
/// The pause between two lines about refusals that were not recorded.
const SAY_AGAIN: Duration = Duration::from_secs(10);
/// The period of a budget.
const MINUTE: Duration = Duration::from_mins(1);
const UNVOUCHED: u32 = 60;
/// Maximum number of such events from one network, so that a single source leaves room for people.
const OF_NETWORK: u32 = 20;

#[derive(Debug)]
pub struct Refusals {
    queue: mpsc::Sender<RefusedRequest>,
    unrecorded: Counter,
    budget: Mutex<Budget>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The events of a minute about tokens that no provider vouched for, by provider and network, and
/// about requests that do not prove their session's key, by session and network.
#[derive(Debug)]
struct Budget {
    began: Instant,
    spent: HashMap<String, HashMap<Option<IpNet>, u32>>,
}

impl Budget {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            spent: HashMap::new(),
        }
    }

    /// Returns true, and counts the refusal, if it may become an event. A refusal beyond the budget
    /// takes no memory.
    fn spend(&mut self, refusal: &RefusedRequest) -> bool {
        if self.began.elapsed() >= MINUTE {
            *self = Self::new();
        }
        // The holder of one session cannot use up another's budget: only a genuine token names a
        // session.
        let of = refusal
            .session
            .map_or_else(|| refusal.provider.clone(), |session| session.to_string());
        let networks = self.spent.entry(of).or_default();
        if networks.values().sum::<u32>() >= UNVOUCHED {
            return false;
        }
        let of_network = networks
            .entry(refusal.origin.ip.and_then(network::around))
            .or_default();
        let within = *of_network < OF_NETWORK;
        *of_network += u32::from(within);
        within
    }
}

impl Refusals {
    /// Opens the queue and the task that empties it; the task ends when the queue is dropped and
    /// empty.
    pub fn open(database: Database) -> Self {
        let (queue, waiting) = mpsc::channel(CAPACITY);
        let unrecorded = Counter::default();
        let waiting = Arc::new(AsyncMutex::new(waiting));
        let counted = unrecorded.clone();
        let writer = background::spawn("refusals", move || {
            write(database.clone(), waiting.clone(), counted.clone())
        });
        Self {
            queue,
            unrecorded,
            budget: Mutex::new(Budget::new()),
            writer: Mutex::new(Some(writer)),
        }
    }

    /// Returns the counter of refusals that were not recorded, since there were too many or the
    /// database failed.
    pub fn unrecorded(&self) -> Counter {
        self.unrecorded.clone()
    }

    /// Returns the task that empties the queue, to await the last refusals. It ends when this value
    /// is dropped.
    pub fn writer(&self) -> Option<JoinHandle<()>> {
        self.writer.lock().ok()?.take()
    }

    /// Queues a refusal, or counts it as unrecorded if the queue is full, or the budget for tokens
    /// that the provider has not vouched for is used up.
    pub fn record(&self, refusal: RefusedRequest, vouched: bool) {
        let budget = || self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        if !vouched && !budget().spend(&refusal) || self.queue.try_send(refusal).is_err() {
            self.unrecorded.inc();
        }
    }
}

async fn write(
    database: Database,
    waiting: Arc<AsyncMutex<mpsc::Receiver<RefusedRequest>>>,
    unrecorded: Counter,
) {
    let mut waiting = waiting.lock().await;
    let mut batch = Vec::with_capacity(BATCH);
    let mut told = 0;
    let mut said_at = None::<Instant>;
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        if let Err(error) = record_refusals(&database, &batch).await {
            let lost = u64::try_from(batch.len()).unwrap_or(u64::MAX);
            tracing::warn!(lost, error = %error, "recording refused sign-ins failed");
            unrecorded.inc_by(lost);
            told += lost;
        }
        batch.clear();
        let dropped = unrecorded.get() - told;
        if dropped > 0 && said_at.is_none_or(|said_at| said_at.elapsed() >= SAY_AGAIN) {
            said_at = Some(Instant::now());
            tracing::warn!(dropped, "too many refused sign-ins to record");
            told += dropped;
        }
    }
}
