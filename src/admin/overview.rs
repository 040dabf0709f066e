//! The overview of recent sign-ins.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use rocket::{Route, State, get, routes};
use serde::Serialize;
use time::{Duration, OffsetDateTime};

use super::advice::Advice;
use super::chart::{Chart, Column};
use super::failure::Failure;
use super::page::{Page, View};
use crate::admin::guard::Staff;
use crate::clock;
use crate::provider::{BOUNDS, Breaker, CallStats, Providers};
use crate::provider_tokens::ProviderTokens;
use crate::provider_tokens::store::Summary;
use crate::store::error::retrying;
use crate::store::event_counts::{CountRow, since};
use crate::store::identities::held;
use crate::web::database::Db;
use crate::webhooks::Webhooks;

/// The outcomes of a sign-in, in the order of the charts' series.
const OUTCOMES: [&str; 5] = ["signed in", "created", "linked", "refused", "no answer"];
/// The reason of a sign-in that failed since the provider gave no answer. It says nothing about the token.
const UNAVAILABLE: &str = "provider_unavailable";
/// The hours in the first chart and the days in the second.
const HOURS: i64 = 48;
const DAYS: i64 = 30;
/// The days that the lists cover.
const LATELY: i64 = 7;

pub(super) fn routes() -> Vec<Route> {
    routes![overview]
}

/// The refused sign-ins for one reason.
#[derive(Debug, Serialize)]
struct Refusals {
    error: String,
    title: String,
    count: i64,
    /// The percentage of all refusals.
    percent: i64,
}

/// The sign-ins with one provider.
#[derive(Debug, Default, Serialize)]
struct ProviderHealth {
    name: String,
    succeeded: i64,
    refused: i64,
    /// The sign-ins that the provider gave no usable answer to. They count as neither of the others.
    unavailable: i64,
    /// The state of its endpoint, if this instance has one.
    now: Option<Now>,
}

/// The state of a provider's endpoint, as this instance sees it.
#[derive(Debug, Serialize)]
struct Now {
    /// `healthy`, `failing`, or `off` for a provider that is switched off.
    state: &'static str,
    /// The median and the 95th percentile of the calls since the start, in words.
    latency: Option<String>,
}

impl Now {
    fn new(stats: &CallStats, enabled: bool) -> Self {
        let health = match stats.breaker {
            _ if !enabled => "off",
            Breaker::Closed => "healthy",
            Breaker::Open | Breaker::HalfOpen => "failing",
        };
        let longest = BOUNDS[BOUNDS.len() - 1];
        let latency = match (stats.percentile(50), stats.percentile(95)) {
            (Some(half), Some(most)) if half == most => {
                Some(format!("95\u{a0}% of the calls within {most}\u{a0}ms"))
            }
            (Some(half), Some(most)) => {
                Some(format!("half of the calls within {half}\u{a0}ms, 95\u{a0}% within {most}\u{a0}ms"))
            }
            (Some(half), None) => {
                Some(format!("half of the calls within {half}\u{a0}ms, some above {longest}\u{a0}ms"))
            }
            (None, _) if stats.latency.iter().any(|calls| *calls > 0) => {
                Some(format!("most calls above {longest}\u{a0}ms"))
            }
            (None, _) => None,
        };
        Self { state: health, latency }
    }
}

#[derive(Serialize)]
pub(super) struct Overview {
    hours: Chart,
    days: Chart,
    refusals: Vec<Refusals>,
    providers: Vec<ProviderHealth>,
    lately: i64,
    webhooks: bool,
    /// The number of users with an identity that is held.
    held: i64,
    /// The webhooks with parked messages.
    parked: Vec<String>,
    /// The providers that have not revoked a token for more than a day.
    unrevoked: Vec<Unrevoked>,
}

/// Tokens of a provider that have waited for more than a day to be revoked.
#[derive(Debug, Serialize)]
struct Unrevoked {
    provider: String,
    count: i64,
    failure: Option<String>,
}

impl Unrevoked {
    /// Returns the tokens of a provider if they need an operator.
    fn of(summary: Summary, now: i64) -> Option<Self> {
        let late = summary.oldest_at.is_some_and(|at| now - at.unix_timestamp() > 86_400);
        let Summary { name: provider, waiting, parked, failure, .. } = summary;
        (late || parked > 0).then_some(Self { provider, count: waiting + parked, failure })
    }
}

impl View for Overview {
    const TEMPLATE: &'static str = "admin/overview";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let row = |kind: &str, reason: &str, count| CountRow {
            hour: OffsetDateTime::from_unix_timestamp(1_782_000_000).unwrap(),
            kind: kind.into(),
            reason: reason.into(),
            provider: super::samples::NASTY.into(),
            count,
        };
        let rows = [
            row("signed_in", "", 3),
            row("sign_in_refused", "token_expired", 2),
            row("sign_in_refused", super::samples::NASTY, 1),
            row("sign_in_refused", UNAVAILABLE, 1),
        ];
        let now: Timestamp = "2026-06-21T12:34:56Z".parse().unwrap();
        let stats = |breaker| CallStats { breaker, ..CallStats::default() };
        let providers = BTreeMap::from([
            ("facebook", (stats(Breaker::Closed), false)),
            ("google", (CallStats { latency: [1; 12], ..stats(Breaker::Closed) }, true)),
            ("line", (stats(Breaker::Open), true)),
            (super::samples::NASTY, (stats(Breaker::HalfOpen), true)),
        ]);
        let page = |rows| Self::new(rows, &providers, &now.to_zoned(TimeZone::UTC));
        let parked = vec![super::samples::NASTY.into(), "shop".into()];
        let unrevoked = |failure| Unrevoked { provider: super::samples::NASTY.into(), count: 2, failure };
        let unrevoked = vec![unrevoked(Some(super::samples::NASTY.into())), unrevoked(None)];
        vec![Self { webhooks: true, held: 2, parked, unrevoked, ..page(&rows[..]) }, page(&[])]
    }
}

/// Returns the index of the event's outcome in [`OUTCOMES`].
fn outcome(row: &CountRow) -> Option<usize> {
    match row.kind.as_str() {
        "signed_in" => Some(0),
        "user_created" => Some(1),
        "identity_linked" => Some(2),
        "sign_in_refused" if row.reason == UNAVAILABLE => Some(4),
        "sign_in_refused" => Some(3),
        _ => None,
    }
}

impl Overview {
    fn new(rows: &[CountRow], providers: &BTreeMap<&str, (CallStats, bool)>, now: &Zoned) -> Self {
        let lately = now.timestamp().as_second() - LATELY * 86_400;
        let (mut by_hour, mut by_day) = (BTreeMap::<_, [u64; 5]>::new(), BTreeMap::<_, [u64; 5]>::new());
        let mut reasons = BTreeMap::<&str, i64>::new();
        let mut health: BTreeMap<&str, ProviderHealth> = BTreeMap::new();
        for (name, (stats, enabled)) in providers {
            let now = Some(Now::new(stats, *enabled));
            health
                .insert(name, ProviderHealth { name: (*name).to_owned(), now, ..ProviderHealth::default() });
        }
        for row in rows {
            let begin = row.hour.unix_timestamp();
            let (Some(outcome), Ok(at)) = (outcome(row), Timestamp::from_second(begin)) else {
                continue;
            };
            let count = u64::try_from(row.count).unwrap_or(0);
            by_hour.entry(begin).or_default()[outcome] += count;
            by_day.entry(at.to_zoned(now.time_zone().clone()).date()).or_default()[outcome] += count;
            if begin < lately {
                continue;
            }
            let provider = health.entry(&row.provider).or_default();
            provider.name.clone_from(&row.provider);
            match OUTCOMES[outcome] {
                "no answer" => provider.unavailable += row.count,
                "refused" => {
                    *reasons.entry(&row.reason).or_default() += row.count;
                    provider.refused += row.count;
                }
                _ => provider.succeeded += row.count,
            }
        }
        let this_hour = now.timestamp().as_second().div_euclid(3600) * 3600;
        let hours = (0..HOURS).rev().filter_map(|back| {
            let begin = this_hour - back * 3600;
            let at = Timestamp::from_second(begin).ok()?.to_zoned(now.time_zone().clone());
            Some(Column {
                name: at.strftime("%a %d %b %H:%M").to_string(),
                label: (at.hour() % 12 == 0).then(|| at.strftime("%a %H:%M").to_string()),
                values: by_hour.get(&begin).copied().unwrap_or_default().into(),
            })
        });
        let days = (0..DAYS).rev().filter_map(|back| {
            let day = now.date().checked_sub(back.days()).ok()?;
            Some(Column {
                name: day.strftime("%a %d %b").to_string(),
                label: (back % 7 == 0).then(|| day.strftime("%d %b").to_string()),
                values: by_day.get(&day).copied().unwrap_or_default().into(),
            })
        });
        let all: i64 = reasons.values().sum();
        let mut refusals: Vec<_> = reasons
            .into_iter()
            .map(|(error, count)| {
                let title = Advice::about(error).map_or(error, |advice| advice.title).to_owned();
                Refusals { error: error.to_owned(), title, count, percent: count * 100 / all.max(1) }
            })
            .collect();
        refusals.sort_by_key(|refusals| -refusals.count);
        Self {
            hours: Chart::new("hours", "Sign-ins in the last 48 hours", &OUTCOMES, hours.collect()),
            days: Chart::new("days", "Sign-ins in the last 30 days", &OUTCOMES, days.collect()),
            refusals,
            providers: health.into_values().collect(),
            lately: LATELY,
            webhooks: false,
            held: 0,
            parked: Vec::new(),
            unrevoked: Vec::new(),
        }
    }
}

#[get("/")]
async fn overview(
    staff: Staff,
    providers: &State<Providers>,
    webhooks: &State<Webhooks>,
    tokens: &State<ProviderTokens>,
    db: &Db,
) -> Result<Page, Failure> {
    let zone = staff.member.time_zone.as_deref().and_then(|name| TimeZone::get(name).ok());
    let now =
        Timestamp::from_second(clock::now()).unwrap_or_default().to_zoned(zone.unwrap_or(TimeZone::UTC));
    let from = OffsetDateTime::from_unix_timestamp(clock::now()).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let rows = retrying!(since(db.pool(), from - Duration::days(DAYS)))?;
    let enabled: BTreeSet<_> = providers.enabled().map(|provider| provider.settings.name.as_str()).collect();
    let stats = providers.call_stats().into_iter();
    let stats = stats.map(|(name, stats)| (name, (stats, enabled.contains(name)))).collect();
    let queues = webhooks.queues();
    let parked = queues.iter().filter(|queue| queue.parked > 0).map(|queue| queue.name.clone()).collect();
    let unrevoked = tokens.waiting().into_iter().filter_map(|summary| Unrevoked::of(summary, clock::now()));
    let page = Overview {
        webhooks: !queues.is_empty(),
        held: retrying!(held(db.pool()))?,
        parked,
        unrevoked: unrevoked.collect(),
        ..Overview::new(&rows, &stats, &now)
    };
    Ok(Page::new(&staff, &page))
}
