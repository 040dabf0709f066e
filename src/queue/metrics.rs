//! The metrics of queues: counters of attempts, and gauges of the waiting rows as they were last
//! read.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Unit;

use super::readings::{Readings, Summary};
use crate::clock;

#[derive(Debug, Clone)]
pub struct Attempts {
    /// The label that has the queue's name.
    label: &'static str,
    pub family: Family<[(&'static str, String); 2], Counter>,
}

impl Attempts {
    pub fn new(label: &'static str) -> Self {
        Self {
            label,
            family: Family::default(),
        }
    }

    /// Sets the counters of a queue to zero, so that the first failure is an increase.
    pub fn begin(&self, queue: &str, outcomes: &[&str]) {
        for outcome in outcomes {
            self.counter(queue, outcome);
        }
    }

    pub fn count(&self, queue: &str, outcome: impl Into<&'static str>) {
        self.counter(queue, outcome.into()).inc();
    }

    fn counter(&self, queue: &str, outcome: &str) -> Counter {
        self.family.get_or_create_owned(&[
            (self.label, queue.to_owned()),
            ("outcome", outcome.to_owned()),
        ])
    }
}

#[derive(Debug)]
pub struct Gauges {
    pub readings: Arc<Readings>,
    /// The label that has the queue's name.
    pub label: &'static str,
    /// The prefix of the metrics' names.
    pub prefix: &'static str,
    /// The help texts of the rows that wait, of parked rows, and of the time since which the oldest
    /// one waits.
    pub help: [&'static str; 3],
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let queues = self.readings.queues();
        let age = |queue: &Summary| {
            queue.oldest_at.map_or(0, |at| {
                clock::now().saturating_sub(at.unix_timestamp()).max(0)
            })
        };
        let [waiting, parked, oldest] = self.help;
        let gauges = [
            (
                "waiting",
                waiting,
                None,
                (|queue| queue.waiting) as fn(&Summary) -> i64,
            ),
            ("parked", parked, None, |queue| queue.parked),
            ("oldest", oldest, Some(&Unit::Seconds), age),
        ];
        for (name, help, unit, read) in gauges {
            let name = format!("{}_{name}", self.prefix);
            let mut family = encoder.encode_descriptor(&name, help, unit, MetricType::Gauge)?;
            for queue in &queues {
                family
                    .encode_family(&[(self.label, queue.name.as_str())])?
                    .encode_gauge(&read(queue))?;
            }
        }
        Ok(())
    }
}
