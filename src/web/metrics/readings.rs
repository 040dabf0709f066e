//! Metrics that are read at each scrape instead of being counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fmt, fs, io};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};
use sqlx::PgPool;

use crate::keys::KeyRing;
use crate::provider::{BOUNDS, Breaker, Providers};
use crate::store::doubt;

/// The connection pools of the database, by name.
#[derive(Debug)]
pub(super) struct Pools(pub [(&'static str, PgPool); 2]);

impl Collector for Pools {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let help = "Database connections by pool and state";
        let mut family = encoder.encode_descriptor("database_connections", help, None, MetricType::Gauge)?;
        for (name, pool) in &self.0 {
            let size = pool.size();
            let idle = u32::try_from(pool.num_idle()).unwrap_or(size);
            for (state, number) in [("idle", idle), ("used", size.saturating_sub(idle))] {
                family.encode_family(&[("pool", *name), ("state", state)])?.encode_gauge(&number)?;
            }
        }
        let help =
            "Checks of database connections that rested, were abandoned, or rested while another one broke";
        encoder
            .encode_descriptor("database_connection_checks", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&doubt::checks(), None)?;
        let most = self.0.each_ref().map(|(name, pool)| (*name, pool.options().get_max_connections().into()));
        let help = "Maximum number of connections of a pool";
        gauges(&mut encoder, "database_connections_max", help, "pool", &most)
    }
}

fn gauge(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: i64) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

fn gauges(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (value, number) in values {
        let labels = [(label, *value)];
        let mut encoder: MetricEncoder = family.encode_family(&labels)?;
        encoder.encode_gauge(&i64::try_from(*number).unwrap_or(i64::MAX))?;
    }
    Ok(())
}

/// The files that this process has open, connections included, and its memory, under the names that Prometheus' own client
/// libraries use. Other systems than Linux have no `/proc`, and no such metrics.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        if let Ok(open) = open_files() {
            gauge(&mut encoder, "process_open_fds", "Open files, connections included", open)?;
        }
        if let Some(limit) = getrlimit(Resource::Nofile).current {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            gauge(&mut encoder, "process_max_fds", "Limit of open files", limit)?;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix(" kB"));
        if let Some(kilobytes) = resident.and_then(|text| text.trim().parse::<i64>().ok()) {
            encoder
                .encode_descriptor(
                    "process_resident_memory",
                    "Memory in use",
                    Some(&Unit::Bytes),
                    MetricType::Gauge,
                )?
                .encode_gauge(&kilobytes.saturating_mul(1024))?;
        }
        Ok(())
    }
}

/// Returns the number of open files. It cannot be told without `/proc`, nor once the limit is reached.
pub fn open_files() -> io::Result<i64> {
    Ok(i64::try_from(fs::read_dir("/proc/self/fd")?.count()).unwrap_or(i64::MAX))
}

#[derive(Debug)]
pub(super) struct Keys(pub KeyRing);

impl Collector for Keys {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let failures = i64::try_from(self.0.failures()).unwrap_or(i64::MAX);
        let help = "Failed reloads of the signing keys since the last successful one";
        gauge(&mut encoder, "signing_key_reload_failures", help, failures)?;
        let published = i64::try_from(self.0.published().len()).unwrap_or(i64::MAX);
        gauge(&mut encoder, "signing_keys", "Published signing keys", published)?;
        let help =
            "Time by which this machine's clock was ahead of the database's at the last reload of the keys";
        let unit = Some(&Unit::Seconds);
        encoder
            .encode_descriptor("clock_ahead_of_database", help, unit, MetricType::Gauge)?
            .encode_gauge(&self.0.ahead_of_database())
    }
}

/// Refused sign-ins that were not recorded as events.
#[derive(Debug)]
pub(super) struct Unrecorded(pub Arc<AtomicU64>);

impl Collector for Unrecorded {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let help = "Refused sign-ins that were not recorded as events";
        encoder
            .encode_descriptor("unrecorded_refusals", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&self.0.load(Ordering::Relaxed), None)
    }
}

#[derive(Debug)]
pub(super) struct Calls(pub Providers);

impl Collector for Calls {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let stats = self.0.call_stats();
        let help = "Calls to providers' endpoints by outcome, or by the reason why none was made";
        let mut family = encoder.encode_descriptor("provider_calls", help, None, MetricType::Counter)?;
        for (provider, stats) in &stats {
            for (outcome, count) in &stats.outcomes {
                let labels = [("provider", *provider), ("outcome", *outcome)];
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        let help = "Response time of providers' endpoints";
        let unit = Unit::Seconds;
        let mut family =
            encoder.encode_descriptor("provider_call_duration", help, Some(&unit), MetricType::Histogram)?;
        for (provider, stats) in &stats {
            let bounds = BOUNDS.iter().map(|bound| Duration::from_millis(*bound).as_secs_f64());
            let buckets: Vec<_> = bounds.chain([f64::MAX]).zip(stats.latency).collect();
            let count = stats.latency.iter().sum();
            let labels = [("provider", *provider)];
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                stats.total.as_secs_f64(),
                count,
                &buckets,
                None,
            )?;
        }
        let help = "State of a provider's circuit breaker: 0 closed, 1 open, 0.5 half-open";
        let mut family = encoder.encode_descriptor("provider_breaker_open", help, None, MetricType::Gauge)?;
        for (provider, stats) in &stats {
            let open = match stats.breaker {
                Breaker::Closed => 0.0,
                Breaker::HalfOpen => 0.5,
                Breaker::Open => 1.0,
            };
            family.encode_family(&[("provider", *provider)])?.encode_gauge(&open)?;
        }
        Ok(())
    }
}
