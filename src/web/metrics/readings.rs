//! What is read off when somebody asks, and not counted before.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use sqlx::PgPool;

/// The pool of connections to the database.
#[derive(Debug)]
pub(super) struct Pool(pub PgPool);

impl Collector for Pool {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let size = self.0.size();
        let idle = u32::try_from(self.0.num_idle()).unwrap_or(size);
        gauges(
            &mut encoder,
            "database_connections",
            "Connections to the database by state",
            "state",
            &[("idle", idle.into()), ("used", size.saturating_sub(idle).into())],
        )?;
        let most = u64::from(self.0.options().get_max_connections());
        gauges(&mut encoder, "database_connections_max", "The most there may be", "state", &[("any", most)])
    }
}

/// Writes a gauge for each value of one label.
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
