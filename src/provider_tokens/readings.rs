//! Metrics of codes and tokens: attempts, which are counted, and what waits, which is read from time to time.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
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

use super::ProviderTokens;
use super::store::{self, PgPool, Since, Summary};
use crate::clock;
use crate::store::Error;
use crate::store::deadline::in_time;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(15);
/// The readings from one of the whole queues to the next, ten minutes. It finds what a transaction of minutes has made due, or
/// an instance whose database has another clock now.
const WHOLE: u32 = 40;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    provider: String,
    outcome: &'static str,
}

/// The outcome of an attempt to exchange a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Exchange {
    /// Its token is stored.
    Stored,
    /// Its token could not be stored.
    Lost,
    /// The provider refuses the code.
    Refused,
    /// The attempt failed and is repeated.
    Failed,
    /// The attempt failed, and the code is too old for another one.
    Expired,
}

/// The outcome of an attempt to revoke a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Revocation {
    /// The provider has revoked it.
    Revoked,
    /// Its identity was linked again.
    Kept,
    /// The attempt failed and is repeated.
    Failed,
    /// The attempt failed, and it was the last one for now.
    Parked,
}

/// The metrics of one process.
#[derive(Debug, Default)]
pub(super) struct Readings {
    exchanges: Family<Labels, Counter>,
    revocations: Family<Labels, Counter>,
    waiting: Mutex<Vec<Summary>>,
    since: Mutex<Since>,
}

impl Readings {
    /// Sets the counters of a provider to zero, so that the first failure is an increase.
    pub fn begin(&self, provider: &str) {
        self.queues().insert(provider.to_owned(), None);
        let labels = |outcome| Labels { provider: provider.to_owned(), outcome };
        for outcome in <Exchange as strum::VariantArray>::VARIANTS {
            drop(self.exchanges.get_or_create(&labels(outcome.into())));
        }
        for outcome in <Revocation as strum::VariantArray>::VARIANTS {
            drop(self.revocations.get_or_create(&labels(outcome.into())));
        }
    }

    pub fn exchange(&self, provider: &str, outcome: Exchange) {
        let labels = Labels { provider: provider.to_owned(), outcome: outcome.into() };
        self.exchanges.get_or_create(&labels).inc();
    }

    pub fn revocation(&self, provider: &str, outcome: Revocation) {
        let labels = Labels { provider: provider.to_owned(), outcome: outcome.into() };
        self.revocations.get_or_create(&labels).inc();
    }

    /// Returns what waits, as it was last read.
    pub fn waiting(&self) -> Vec<Summary> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what waits.
    pub fn read(&self, summaries: Vec<Summary>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = summaries;
    }

    /// Returns the time before which no row of a provider is due, or `None` before the first reading.
    pub fn since(&self, provider: &str) -> Option<OffsetDateTime> {
        self.queues().get(provider).copied().flatten()
    }

    fn queues(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_queues(&self, pool: &PgPool, whole: bool) -> Result<(), Error> {
        let known = |(name, since): (&String, &Option<_>)| (name.clone(), since.filter(|_| !whole));
        let known = self.queues().iter().map(known).collect();
        let since = in_time(store::since(pool, &known)).await?;
        *self.queues() = since;
        Ok(())
    }

    /// Reads what waits until `stop` says otherwise or the pool is closed.
    pub async fn keep_reading(&self, pool: &PgPool, mut stop: watch::Receiver<bool>) {
        for reading in (0..WHOLE).cycle() {
            if pool.is_closed() || *stop.borrow() {
                return;
            }
            if let Err(error) = self.read_queues(pool, reading == 0).await {
                tracing::warn!(%error, "reading the queues of providers' tokens failed and will be retried");
            }
            tokio::select! {
                // It fails only if the sender is gone, which is the end as well.
                _ = stop.changed() => return,
                () = sleep(PAUSE) => {}
            }
            match in_time(store::summaries(pool)).await {
                Ok(summaries) => self.read(summaries),
                Err(error) => {
                    tracing::warn!(%error, "reading the tokens that wait to be revoked failed and will be retried");
                }
            }
        }
    }
}

impl ProviderTokens {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let readings = &self.0.readings;
        let help = "Attempts to exchange an authorization code for a token that can be revoked, by outcome";
        registry.register("provider_code_exchanges", help, readings.exchanges.clone());
        let help = "Attempts to revoke a provider's token, by outcome";
        registry.register("provider_revocations", help, readings.revocations.clone());
        registry.register_collector(Box::new(Waiting(self.clone())));
    }
}

/// What waits, as it was last read.
#[derive(Debug)]
struct Waiting(ProviderTokens);

impl Collector for Waiting {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut waiting = self.0.waiting();
        for provider in self.0.revoking() {
            if !waiting.iter().any(|summary| summary.provider == provider) {
                waiting.push(Summary { provider, waiting: 0, oldest_at: None, parked: 0, failure: None });
            }
        }
        let age = |summary: &Summary| {
            summary.oldest_at.map_or(0, |at| clock::now().saturating_sub(at.unix_timestamp()).max(0))
        };
        let help = "Provider tokens that wait to be revoked, up to 100,000";
        let name = "provider_revocations_waiting";
        gauges(&mut encoder, (name, help, None), &waiting, |summary| summary.waiting)?;
        let help = "Provider tokens that were not revoked for a month, up to 100,000";
        let name = "provider_revocations_parked";
        gauges(&mut encoder, (name, help, None), &waiting, |summary| summary.parked)?;
        let help = "Time since which the oldest provider token waits to be revoked";
        gauges(&mut encoder, ("provider_revocations_oldest", help, Some(&Unit::Seconds)), &waiting, age)
    }
}

fn gauges(
    encoder: &mut DescriptorEncoder,
    (name, help, unit): (&str, &str, Option<&Unit>),
    waiting: &[Summary],
    read: impl Fn(&Summary) -> i64,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for summary in waiting {
        let labels = [("provider", summary.provider.as_str())];
        family.encode_family(&labels)?.encode_gauge(&read(summary))?;
    }
    Ok(())
}
