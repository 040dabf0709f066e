//! Metrics of the webhooks: attempts, which are counted, and the queues, which are read from time to time.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Webhooks;
use super::failure::Failure;
use super::store::{self, PgPool, Summary};
use crate::clock;
use crate::store::deadline::in_time;

/// The pause between two readings of the queues.
const PAUSE: Duration = Duration::from_secs(15);
/// The readings from one of the whole queues to the next, ten minutes. It finds what a transaction of minutes has queued, or an
/// instance whose database has another clock now.
const WHOLE: u32 = 40;
/// The outcome of an attempt that the receiver accepted.
const DELIVERED: &str = "delivered";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    webhook: String,
    outcome: &'static str,
}

/// The metrics of one process.
#[derive(Debug, Default)]
pub(super) struct Readings {
    deliveries: Family<Labels, Counter>,
    queues: Mutex<Vec<Summary>>,
}

impl Readings {
    /// Sets the counters of a webhook to zero, so that the first failure is an increase.
    pub fn begin(&self, webhook: &str) {
        for outcome in Failure::CLASSES.into_iter().chain([DELIVERED]) {
            drop(self.deliveries.get_or_create(&Labels { webhook: webhook.to_owned(), outcome }));
        }
    }

    /// Counts an attempt.
    pub fn count(&self, webhook: &str, failure: Option<&Failure>) {
        let outcome = failure.map_or(DELIVERED, Failure::class);
        self.deliveries.get_or_create(&Labels { webhook: webhook.to_owned(), outcome }).inc();
    }

    /// Returns the queues as they were last read.
    pub fn queues(&self) -> Vec<Summary> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the time before which no message of a webhook is due, or `None` before the first reading.
    pub fn since(&self, webhook: &str) -> Option<OffsetDateTime> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().find(|queue| queue.name == webhook).map(|queue| queue.since)
    }

    /// Reads the queues until `stop` says otherwise or the pool is closed.
    pub async fn keep_reading(&self, pool: &PgPool, mut stop: watch::Receiver<bool>) {
        for reading in (0..WHOLE).cycle() {
            if pool.is_closed() || *stop.borrow() {
                return;
            }
            let known = if reading == 0 { Vec::new() } else { self.queues() };
            match in_time(store::summaries(pool, &known)).await {
                Ok(summaries) => *self.queues.lock().unwrap_or_else(PoisonError::into_inner) = summaries,
                Err(error) => {
                    tracing::warn!(%error, "reading the queues of webhooks failed and will be retried");
                }
            }
            tokio::select! {
                // It fails only if the sender is gone, which is the end as well.
                _ = stop.changed() => {}
                () = sleep(PAUSE) => {}
            }
        }
    }
}

impl Webhooks {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Attempts to send a webhook message by outcome";
        registry.register("webhook_deliveries", help, self.0.readings.deliveries.clone());
        registry.register_collector(Box::new(Queues(self.clone())));
    }
}

/// The queues as they were last read.
#[derive(Debug)]
struct Queues(Webhooks);

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let queues = self.0.queues();
        let age = |queue: &Summary| {
            queue.oldest_at.map_or(0, |at| clock::now().saturating_sub(at.unix_timestamp()).max(0))
        };
        let help = "Webhook messages that wait to be accepted, up to 100,000";
        gauges(&mut encoder, ("webhook_waiting", help, None), &queues, |queue| queue.waiting)?;
        let help = "Webhook messages that are parked, up to 100,000";
        gauges(&mut encoder, ("webhook_parked", help, None), &queues, |queue| queue.parked)?;
        let help = "Time since which the oldest waiting webhook message waits";
        gauges(&mut encoder, ("webhook_oldest", help, Some(&Unit::Seconds)), &queues, age)
    }
}

fn gauges(
    encoder: &mut DescriptorEncoder,
    (name, help, unit): (&str, &str, Option<&Unit>),
    queues: &[Summary],
    read: impl Fn(&Summary) -> i64,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for queue in queues {
        let labels = [("webhook", queue.name.as_str())];
        family.encode_family(&labels)?.encode_gauge(&read(queue))?;
    }
    Ok(())
}
