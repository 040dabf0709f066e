//! Metrics that are read at each scrape instead of being counted.

use std::time::Duration;
use std::{fmt, fs, io};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};

use crate::database::Database;
use crate::keys::KeyRing;
use crate::provider::{BOUNDS, Breaker, Providers};

/// The sources of these metrics: the connections to the database, the signing keys, and the calls to
/// providers.
#[derive(Debug)]
pub(super) struct Readings {
    pub database: Database,
    pub keys: KeyRing,
    pub providers: Providers,
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.encode_pools(&mut encoder)?;
        self.encode_keys(&mut encoder)?;
        self.encode_calls(&mut encoder)
    }
}

impl Readings {
    fn encode_pools(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "Database connections by pool and state";
        let mut family =
            encoder.encode_descriptor("database_connections", help, None, MetricType::Gauge)?;
        let pools = [
            ("requests", self.database.pool()),
            ("shared", self.database.lanes()),
        ];
        for (name, pool) in pools {
            let size = pool.size();
            let idle = u32::try_from(pool.num_idle()).unwrap_or(size);
            for (state, number) in [("idle", idle), ("used", size.saturating_sub(idle))] {
                family
                    .encode_family(&[("pool", name), ("state", state)])?
                    .encode_gauge(&number)?;
            }
        }
        let help = "Checks of database connections that rested, or rested while another one broke";
        encoder
            .encode_descriptor(
                "database_connection_checks",
                help,
                None,
                MetricType::Counter,
            )?
            .encode_counter::<NoLabelSet, _, u64>(&self.database.checks(), None)?;
        let help = "Maximum number of connections of a pool";
        let mut family =
            encoder.encode_descriptor("database_connections_max", help, None, MetricType::Gauge)?;
        for (name, pool) in pools {
            let most = pool.options().get_max_connections();
            family
                .encode_family(&[("pool", name)])?
                .encode_gauge(&most)?;
        }
        Ok(())
    }

    fn encode_keys(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let failures = i64::try_from(self.keys.failures()).unwrap_or(i64::MAX);
        let help = "Failed reloads of the signing keys since the last successful one";
        gauge(encoder, "signing_key_reload_failures", help, None, failures)?;
        let published = i64::try_from(self.keys.published().len()).unwrap_or(i64::MAX);
        gauge(
            encoder,
            "signing_keys",
            "Published signing keys",
            None,
            published,
        )?;
        let help = "Time by which this machine's clock was ahead of the database's at the last reload of the keys";
        let ahead = self.keys.ahead_of_database();
        gauge(
            encoder,
            "clock_ahead_of_database",
            help,
            Some(&Unit::Seconds),
            ahead,
        )
    }

    fn encode_calls(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let stats = self.providers.call_stats();
        let help = "Calls to providers' endpoints by outcome, or by the reason why none was made";
        let mut family =
            encoder.encode_descriptor("provider_calls", help, None, MetricType::Counter)?;
        for (provider, stats) in &stats {
            for (outcome, count) in &stats.outcomes {
                let labels = [("provider", *provider), ("outcome", *outcome)];
                family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        let help = "Response time of providers' endpoints";
        let unit = Unit::Seconds;
        let mut family = encoder.encode_descriptor(
            "provider_call_duration",
            help,
            Some(&unit),
            MetricType::Histogram,
        )?;
        for (provider, stats) in &stats {
            let bounds = BOUNDS
                .iter()
                .map(|bound| Duration::from_millis(*bound).as_secs_f64());
            let buckets: Vec<_> = bounds.chain([f64::MAX]).zip(stats.latency).collect();
            let count = stats.latency.iter().sum();
            let labels = [("provider", *provider)];
            family
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(stats.total.as_secs_f64(), count, &buckets, None)?;
        }
        let help = "State of a provider's circuit breaker: 0 closed, 1 open, 0.5 half-open";
        let mut family =
            encoder.encode_descriptor("provider_breaker_open", help, None, MetricType::Gauge)?;
        for (provider, stats) in &stats {
            let open = match stats.breaker {
                Breaker::Closed => 0.0,
                Breaker::HalfOpen => 0.5,
                Breaker::Open => 1.0,
            };
            family
                .encode_family(&[("provider", *provider)])?
                .encode_gauge(&open)?;
        }
        let help = "1 if most of the latest sign-ins, of up to an hour ago, got no usable answer from the provider";
        let mut family =
            encoder.encode_descriptor("provider_failing", help, None, MetricType::Gauge)?;
        for (provider, stats) in &stats {
            let failing = i64::from(stats.failing == Some(true));
            family
                .encode_family(&[("provider", *provider)])?
                .encode_gauge(&failing)?;
        }
        Ok(())
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: i64,
) -> fmt::Result {
    encoder
        .encode_descriptor(name, help, unit, MetricType::Gauge)?
        .encode_gauge(&value)
}

/// The files that this process has open, connections included, and its memory, under the names that
/// Prometheus' own client libraries use. Other systems than Linux have no `/proc`, and no such
/// metrics.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        if let Ok(open) = open_files() {
            gauge(
                &mut encoder,
                "process_open_fds",
                "Open files, connections included",
                None,
                open,
            )?;
        }
        if let Some(limit) = getrlimit(Resource::Nofile).current {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            gauge(
                &mut encoder,
                "process_max_fds",
                "Limit of open files",
                None,
                limit,
            )?;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix(" kB"));
        if let Some(kilobytes) = resident.and_then(|text| text.trim().parse::<i64>().ok()) {
            let bytes = kilobytes.saturating_mul(1024);
            gauge(
                &mut encoder,
                "process_resident_memory",
                "Memory in use",
                Some(&Unit::Bytes),
                bytes,
            )?;
        }
        Ok(())
    }
}

/// Returns the number of open files. Fails without `/proc`, and once the limit of open files is
/// reached.
pub fn open_files() -> io::Result<i64> {
    Ok(i64::try_from(fs::read_dir("/proc/self/fd")?.count()).unwrap_or(i64::MAX))
}
