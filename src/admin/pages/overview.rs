//! The overview of recent sign-ins.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use rocket::{Route, State, get, routes};
use serde::Serialize;
use time::{Duration, OffsetDateTime};
use url::form_urlencoded;

use crate::accounts::identities::held;
use crate::admin::pages::advice::Advice;
use crate::admin::pages::chart::{Chart, Column, height};
use crate::admin::pages::webhooks::Receiver;
use crate::admin::pages::{Failure, Page, Staff};
use crate::admin::staff::store::{HijackedRow, hijacked};
use crate::clock;
use crate::domain::Role;
use crate::events::EventKind;
use crate::events::counts::{CountRow, since};
use crate::provider::{BOUNDS, Breaker, CallStats, Providers};
use crate::provider_tokens::ProviderTokens;
use crate::provider_tokens::store::Summary;
use crate::web::Db;
use crate::webhooks::Webhooks;
use crate::webhooks::store::summaries;

/// The outcomes of a sign-in, in the order of the charts' series.
const OUTCOMES: [&str; 5] = ["signed in", "created", "linked", "refused", "no answer"];
/// The reason of a sign-in that failed since the provider gave no answer. It says nothing about the
/// token.
const UNAVAILABLE: &str = "provider_unavailable";
/// The hours in the first chart and the days in the second.
const HOURS: i64 = 48;
const DAYS: i64 = 30;
/// The days that the lists cover.
const LATELY: i64 = 7;

pub(super) fn routes() -> Vec<Route> {
    routes![overview]
}

#[derive(Debug, Serialize)]
struct Refusals {
    error: String,
    title: String,
    count: i64,
    /// The percentage of all refusals.
    percent: i64,
}

#[derive(Debug, Default, Serialize)]
struct ProviderHealth {
    succeeded: i64,
    refused: i64,
    /// The sign-ins that the provider gave no usable response to. They are neither succeeded nor
    /// refused.
    unavailable: i64,
    /// `unavailable` in the current hour.
    unavailable_now: i64,
    #[serde(skip)]
    succeeded_now: i64,
    /// The state of its endpoint, if this instance has one.
    now: Option<Now>,
}

#[derive(Debug, Serialize)]
struct Now {
    /// `healthy`, `failing`, or `off` for a provider that is switched off.
    state: &'static str,
    /// The time in ms within which half and 95 % of the calls since the start had an answer; `None`
    /// above `longest`.
    half: Option<u64>,
    most: Option<u64>,
    longest: u64,
    called: bool,
}

impl Now {
    fn new(stats: &CallStats, enabled: bool) -> Self {
        let health = match (stats.breaker, stats.failing) {
            _ if !enabled => "off",
            (Breaker::Closed, None | Some(false)) => "healthy",
            (Breaker::Closed, Some(true)) | (Breaker::Open | Breaker::HalfOpen, _) => "failing",
        };
        let half = stats.percentile(50);
        let most = stats.percentile(95);
        let called = stats.latency.iter().any(|calls| *calls > 0);
        Self {
            state: health,
            half,
            most,
            longest: BOUNDS[BOUNDS.len() - 1],
            called,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Overview {
    now: String,
    /// The beginning of this hour, and of the days that the lists cover.
    hour: String,
    since: String,
    figures: Vec<Figure>,
    hours: Chart,
    days: Chart,
    refusals: Vec<Refusals>,
    providers: BTreeMap<String, ProviderHealth>,
    lately: i64,
    failing: bool,
    attack: Option<Attack>,
    /// The number of users with an identity that is held.
    held: i64,
    /// The members of staff whose accounts were hijacked, for admins.
    hijacked: Vec<HijackedRow>,
    /// The webhooks that need a person.
    behind: Vec<Receiver>,
    /// The providers that have not revoked a token for more than a day.
    unrevoked: Vec<Summary>,
}

#[derive(Serialize)]
struct Figure {
    label: &'static str,
    value: String,
    /// True if it needs a person.
    bad: bool,
    line: String,
    usual: String,
}

/// Refusals far above the usual of this hour.
#[derive(Serialize)]
struct Attack {
    now: u64,
    usual: u64,
}

/// The least number of sign-ins in an hour without an answer after which a provider may be failing.
const FAILURES: i64 = 5;
/// The least number of refusals in an hour that may be an attack, and how many times the usual they
/// have to be.
const MANY: u64 = 30;
const TIMES: u64 = 4;

/// Returns true if tokens of a provider are parked, or have waited for more than a day to be
/// revoked.
fn is_unrevoked(tokens: &Summary) -> bool {
    tokens.parked > 0
        || tokens
            .oldest_at
            .is_some_and(|at| clock::now() - at.unix_timestamp() > 86_400)
}

/// Returns the place of a count among the [`OUTCOMES`]. Only kinds of sign-ins are counted.
fn outcome(row: &CountRow) -> Option<usize> {
    match row.kind.parse().ok()? {
        EventKind::SignedIn => Some(0),
        EventKind::UserCreated => Some(1),
        EventKind::IdentityLinked if row.reason == "imported" => None,
        EventKind::IdentityLinked => Some(2),
        EventKind::SignInRefused if row.reason == UNAVAILABLE => Some(4),
        EventKind::SignInRefused => Some(3),
        _ => None,
    }
}

/// Returns the path of the audit of everything between two times or days.
fn audit(from: &str, to: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("what", "everything")
        .append_pair("from", from)
        .append_pair("to", to);
    format!("/admin/audit?{}", query.finish())
}

/// Returns the points of a line through these values, 100 wide and 32 high.
fn line(values: &[u64]) -> String {
    let top = values.iter().copied().max().unwrap_or(0);
    let step = 100.0
        / f64::from(
            u32::try_from(values.len())
                .unwrap_or(1)
                .saturating_sub(1)
                .max(1),
        );
    let mut x = 0.0;
    let mut points = Vec::new();
    for value in values {
        points.push(format!("{x:.1},{:.1}", 30.0 - 0.28 * height(*value, top)));
        x += step;
    }
    points.join(" ")
}

/// Returns the difference between a number and the usual one, in words.
fn against(number: u64, usual: u64, when: &str) -> String {
    match (number.abs_diff(usual) * 100).checked_div(usual) {
        None => format!("none {when}"),
        Some(0..5) => format!("about as many as {when}"),
        Some(percent) => {
            format!(
                "{percent}\u{a0}% {} than {when}",
                if number < usual { "fewer" } else { "more" }
            )
        }
    }
}

type Outcomes = [u64; OUTCOMES.len()];

fn add(mut sum: Outcomes, more: &Outcomes) -> Outcomes {
    sum.iter_mut()
        .zip(more)
        .for_each(|(sum, more)| *sum += more);
    sum
}

impl Overview {
    fn new(rows: &[CountRow], providers: &BTreeMap<&str, (CallStats, bool)>, now: &Zoned) -> Self {
        let zone = now.time_zone();
        let second = now.timestamp().as_second();
        let this_hour = second - second.rem_euclid(3600);
        let since = this_hour - LATELY * 86_400;
        let written = |second| {
            Timestamp::from_second(second)
                .map(|at| at.to_string())
                .unwrap_or_default()
        };
        let mut by_hour = BTreeMap::<i64, Outcomes>::new();
        let mut by_day = BTreeMap::<_, Outcomes>::new();
        let mut reasons = BTreeMap::<&str, i64>::new();
        let mut health = BTreeMap::<String, ProviderHealth>::new();
        for (name, (stats, enabled)) in providers {
            let now = Now::new(stats, *enabled);
            health.insert(
                (*name).to_owned(),
                ProviderHealth {
                    now: Some(now),
                    ..ProviderHealth::default()
                },
            );
        }
        for row in rows {
            let begin = row.hour.unix_timestamp();
            let (Some(outcome), Ok(at)) = (outcome(row), Timestamp::from_second(begin)) else {
                continue;
            };
            let count = u64::try_from(row.count).unwrap_or(0);
            by_hour.entry(begin).or_default()[outcome] += count;
            by_day.entry(at.to_zoned(zone.clone()).date()).or_default()[outcome] += count;
            // The API creates users without a provider.
            if begin < since || row.provider.is_empty() {
                continue;
            }
            let provider = health.entry(row.provider.clone()).or_default();
            match OUTCOMES[outcome] {
                "no answer" => {
                    provider.unavailable += row.count;
                    provider.unavailable_now += if begin == this_hour { row.count } else { 0 };
                }
                "refused" => {
                    *reasons.entry(&row.reason).or_default() += row.count;
                    provider.refused += row.count;
                }
                _ => {
                    provider.succeeded += row.count;
                    provider.succeeded_now += if begin == this_hour { row.count } else { 0 };
                }
            }
        }
        // If this instance has made too few calls to judge a provider, the sign-ins of this hour at
        // all instances decide.
        for (name, health) in &mut health {
            let unknown = providers
                .get(name.as_str())
                .is_some_and(|(stats, _)| stats.failing.is_none());
            if unknown
                && health.unavailable_now >= FAILURES
                && health.unavailable_now > health.succeeded_now
            {
                health
                    .now
                    .iter_mut()
                    .filter(|now| now.state == "healthy")
                    .for_each(|now| now.state = "failing");
            }
        }
        let unit = |unit: &str| format!("by the {unit}, in {}", zone.iana_name().unwrap_or("UTC"));
        let hours = (0..HOURS).rev().filter_map(|back| {
            let begin = this_hour - back * 3600;
            let at = Timestamp::from_second(begin).ok()?.to_zoned(zone.clone());
            Some(Column {
                name: at.strftime("%a %d %b %H:%M").to_string(),
                label: (at.hour() % 12 == 0).then(|| {
                    at.strftime(if at.hour() == 0 { "%a" } else { "%H:%M" })
                        .to_string()
                }),
                href: audit(&written(begin), &written(begin + 3600)),
                values: by_hour.get(&begin).copied().unwrap_or_default().into(),
            })
        });
        let days = (0..DAYS).rev().filter_map(|back| {
            let day = now.date().checked_sub(back.days()).ok()?;
            Some(Column {
                name: day.strftime("%a %d %b").to_string(),
                label: (back % 7 == 6).then(|| day.strftime("%d %b").to_string()),
                href: audit(&day.to_string(), &day.to_string()),
                values: by_day.get(&day).copied().unwrap_or_default().into(),
            })
        });
        let refused_at = |second: i64| by_hour.get(&second).map_or(0, |outcomes| outcomes[3]);
        let usual = (1..=LATELY)
            .map(|day| refused_at(this_hour - day * 86_400))
            .sum::<u64>()
            / 7;
        let refused = refused_at(this_hour);
        Self {
            now: written(second),
            hour: written(this_hour),
            since: written(since),
            figures: figures(&by_hour, now),
            hours: Chart::new(
                "hours",
                "Sign-ins in 48 hours",
                unit("hour"),
                &OUTCOMES,
                hours.collect(),
            ),
            days: Chart::new(
                "days",
                "Sign-ins in 30 days",
                unit("day"),
                &OUTCOMES,
                days.collect(),
            ),
            refusals: refusals(reasons),
            failing: health.values().any(|health| {
                health
                    .now
                    .as_ref()
                    .is_some_and(|now| now.state == "failing")
            }),
            providers: health,
            lately: LATELY,
            attack: (refused >= MANY && refused >= TIMES * usual).then_some(Attack {
                now: refused,
                usual,
            }),
            held: 0,
            hijacked: Vec::new(),
            behind: Vec::new(),
            unrevoked: Vec::new(),
        }
    }
}

fn refusals(reasons: BTreeMap<&str, i64>) -> Vec<Refusals> {
    let all: i64 = reasons.values().sum();
    let mut refusals: Vec<_> = reasons
        .into_iter()
        .map(|(error, count)| {
            let title = Advice::about(error)
                .map_or(error, |advice| advice.title)
                .to_owned();
            Refusals {
                error: error.to_owned(),
                title,
                count,
                percent: count * 100 / all.max(1),
            }
        })
        .collect();
    refusals.sort_by_key(|refusals| -refusals.count);
    refusals
}

/// Returns the figures of today, each with the figure of the same day a week ago up to the same
/// hour.
fn figures(by_hour: &BTreeMap<i64, Outcomes>, now: &Zoned) -> Vec<Figure> {
    let second = now.timestamp().as_second();
    let midnight = now
        .start_of_day()
        .map_or(second, |start| start.timestamp().as_second());
    let week = LATELY * 86_400;
    let between = |from, to| {
        by_hour
            .range(from..=to)
            .map(|(_, outcomes)| outcomes)
            .fold([0; 5], add)
    };
    let today = between(midnight, second);
    let before = between(midnight - week, second - week);
    let when = format!("last {} by now", now.strftime("%A"));
    let hours = second - second.rem_euclid(3600);
    let of = |choose: fn(&Outcomes) -> u64| {
        let hours = (1..=12)
            .rev()
            .map(|back| by_hour.get(&(hours - back * 3600)).map_or(0, choose));
        line(&hours.collect::<Vec<_>>())
    };
    let signed_in: fn(&Outcomes) -> u64 = |outcomes| outcomes[..3].iter().sum();
    let share = |outcomes: &Outcomes| {
        (outcomes[3] * 100)
            .checked_div(signed_in(outcomes) + outcomes[3])
            .unwrap_or(0)
    };
    let refused = share(&today);
    let usual = share(&before);
    let figure = |label, number: u64, usual, line| Figure {
        label,
        value: number.to_string(),
        bad: false,
        line,
        usual: against(number, usual, &when),
    };
    vec![
        figure(
            "Sign-ins today",
            signed_in(&today),
            signed_in(&before),
            of(signed_in),
        ),
        Figure {
            label: "Refused today",
            value: format!("{refused}\u{a0}%"),
            bad: today[3] >= MANY && refused >= 2 * usual.max(1),
            line: of(|outcomes| outcomes[3]),
            usual: format!(
                "{} of {}, {usual}\u{a0}% {when}",
                today[3],
                signed_in(&today) + today[3]
            ),
        },
        figure(
            "New users today",
            today[1],
            before[1],
            of(|outcomes| outcomes[1]),
        ),
    ]
}

#[get("/")]
async fn overview(
    staff: Staff,
    providers: &State<Providers>,
    webhooks: &State<Webhooks>,
    tokens: &State<ProviderTokens>,
    db: &Db,
) -> Result<Page, Failure> {
    let zone = staff
        .member
        .time_zone
        .as_deref()
        .and_then(|name| TimeZone::get(name).ok());
    let now = Timestamp::from_second(clock::now())
        .unwrap_or_default()
        .to_zoned(zone.unwrap_or(TimeZone::UTC));
    let from =
        OffsetDateTime::from_unix_timestamp(clock::now()).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let rows = db.run(|_| since(db, from - Duration::days(DAYS))).await?;
    let enabled: BTreeSet<_> = providers
        .enabled()
        .map(|provider| provider.settings.name.as_str())
        .collect();
    let stats = providers.call_stats().into_iter();
    let stats = stats
        .map(|(name, stats)| (name, (stats, enabled.contains(name))))
        .collect();
    // Read anew, since this instance's latest reading may be older than a change.
    let known = webhooks.queues();
    let queues = db.run(|_| summaries(db, &known)).await?.into_iter();
    let page = Overview {
        held: db.run(|_| held(db)).await?,
        hijacked: if staff.member.role == Role::Admin {
            db.run(|_| hijacked(db)).await?
        } else {
            Vec::new()
        },
        behind: queues
            .map(|queue| Receiver::new(queue, webhooks))
            .filter(|queue| queue.state == "behind")
            .collect(),
        unrevoked: tokens.waiting().into_iter().filter(is_unrevoked).collect(),
        ..Overview::new(&rows, &stats, &now)
    };
    Ok(Page::new(&staff, "admin/overview", &page))
}
