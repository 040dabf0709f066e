//! The metrics for Prometheus: requests, problems, sign-ins, refreshes and rate limits, and
//! readings of the providers, the signing keys and the connection pool. No label identifies a user
//! or an IP address.

pub mod readings;

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use rocket::Request;
use strum::VariantArray;

use self::readings::{Process, Readings};
use super::api::sign_in_errors;
use super::problem::{ErrorCode, Problem};
use crate::accounts::sessions::NotRefreshed;
use crate::accounts::users::Outcome;
use crate::database::Database;
use crate::domain::Thumbprint;
use crate::domain::dpop::Refused;
use crate::events::Refusals;
use crate::keys::KeyRing;
use crate::provider::Providers;
use crate::provider_tokens::ProviderTokens;
use crate::prune::Failures;
use crate::telemetry::database::Times;
use crate::telemetry::lines;
use crate::webhooks::Webhooks;
use crate::{background, clock};

/// The upper bounds of the request histograms, in seconds.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];
/// The outcome of a valid proof.
const ACCEPTED: &str = "accepted";
/// The outcome of a successful refresh.
const ROTATED: &str = "rotated";
/// The outcome of a sign-in whose token may be the reason for the provider's unusable answer.
const NO_VERDICT: &str = "no_verdict";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

/// The result of a sign-in: the labels of its series, and fields of its line in the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SignIn {
    /// The name of a configured provider; empty for any other.
    pub provider: String,
    /// The outcome, or the error.
    pub outcome: &'static str,
}

/// The name and the value of a series' only label.
type Label = [(&'static str, &'static str); 1];

/// A request without an answer yet, kept with that request.
#[derive(Debug)]
struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    in_flight: Gauge,
    requests: Family<RequestLabels, Counter>,
    problems: Family<Label, Counter>,
    durations: Family<[(&'static str, String); 1], Histogram>,
    sign_ins: Family<SignIn, Counter>,
    refreshes: Family<Label, Counter>,
    proofs: Family<Label, Counter>,
    limited: Family<[(&'static str, String); 1], Counter>,
}

impl Metrics {
    /// Creates the counters at zero and registers the readings.
    pub fn new(
        database: Database,
        times: &Times,
        keys: KeyRing,
        providers: Providers,
        refusals: &Refusals,
        prune_failures: &Failures,
        (webhooks, provider_tokens): (&Webhooks, &ProviderTokens),
    ) -> Self {
        let mut registry = Registry::default();
        // Prometheus expects these names without the prefix.
        let started: Gauge = Gauge::default();
        started.set(clock::now());
        registry.register_with_unit(
            "process_start_time",
            "Start time of the process",
            Unit::Seconds,
            started,
        );
        registry.register_collector(Box::new(Process));
        let ours = registry.sub_registry_with_prefix("vestibule");
        let build = Info::new([
            ("version", env!("CARGO_PKG_VERSION")),
            ("commit", env!("VESTIBULE_COMMIT")),
        ]);
        ours.register("build", "Version and commit of the running program", build);
        let in_flight = add(
            ours,
            "requests_in_flight",
            "Requests in progress",
            Gauge::default(),
        );
        let requests = add(
            ours,
            "requests",
            "Requests by route and status",
            Family::default(),
        );
        let problems = add(
            ours,
            "problems",
            "Failed requests by error",
            Family::default(),
        );
        let durations =
            Family::new_with_constructor((|| Histogram::new(BOUNDS)) as fn() -> Histogram);
        let help = "Time from a request's arrival to its response";
        ours.register_with_unit("request_duration", help, Unit::Seconds, durations.clone());
        let sign_ins = add(
            ours,
            "sign_ins",
            "Sign-ins by provider and outcome or error",
            Family::default(),
        );
        let refreshes = add(ours, "refreshes", "Refreshes by outcome", Family::default());
        let help = "Requests with a DPoP proof or without a required one, by outcome";
        let proofs = add(ours, "proofs", help, Family::default());
        let limited = add(
            ours,
            "rate_limited",
            "Requests refused by a rate limit",
            Family::default(),
        );
        let help =
            "Lines of the log that were not written, since whoever reads it was too slow or gone";
        ours.register("log_lines_dropped", help, lines::dropped());
        for (name, help, times) in [
            (
                "database_wait",
                "Time until a database connection was acquired",
                &times.waits,
            ),
            (
                "database_statement",
                "Time of database statements, including the network",
                &times.statements,
            ),
            (
                "batch_wait",
                "Time that the first sign-in or refresh of a batch waited for its statement",
                &times.queue,
            ),
        ] {
            ours.register_with_unit(name, help, Unit::Seconds, times.clone());
        }
        ours.register(
            "batch_size",
            "Sign-ins or refreshes per statement",
            times.batches.clone(),
        );
        let help = "Refused sign-ins that were not recorded as events";
        ours.register("unrecorded_refusals", help, refusals.unrecorded());
        let help = "Steps of pruning that failed";
        ours.register("prune_failures", help, prune_failures.clone());
        let help = "Panics of background tasks, each of which was replaced";
        ours.register("background_panics", help, background::panics());
        let names = providers.names();
        ours.register_collector(Box::new(Readings {
            database,
            keys,
            providers,
        }));
        webhooks.register(ours);
        provider_tokens.register(ours);
        let metrics = Self {
            registry,
            in_flight,
            requests,
            problems,
            durations,
            sign_ins,
            refreshes,
            proofs,
            limited,
        };
        metrics.begin(&names);
        metrics
    }

    /// Sets rare but important counters to zero. Prometheus then sees the first event as an
    /// increase, and a provider without any success as a rate of zero instead of as missing data.
    fn begin(&self, providers: &[String]) {
        for error in ErrorCode::all().map(|kind| kind.entry().error) {
            drop(self.problems.get_or_create(&[("error", error)]));
        }
        for outcome in NotRefreshed::VARIANTS
            .iter()
            .map(Into::into)
            .chain([ROTATED])
        {
            drop(self.refreshes.get_or_create(&[("outcome", outcome)]));
        }
        for outcome in Refused::VARIANTS.iter().map(Into::into).chain([ACCEPTED]) {
            drop(self.proofs.get_or_create(&[("outcome", outcome)]));
        }
        for provider in providers {
            let errors = sign_in_errors().map(|kind| kind.entry().error);
            for outcome in Outcome::VARIANTS
                .iter()
                .map(Into::into)
                .chain(errors)
                .chain([NO_VERDICT])
            {
                drop(self.sign_ins.get_or_create(&SignIn {
                    provider: provider.clone(),
                    outcome,
                }));
            }
        }
    }

    pub fn arrived(&self, request: &Request<'_>) {
        request.local_cache(|| {
            self.in_flight.inc();
            InFlight(self.in_flight.clone())
        });
    }

    pub fn prove(&self, verdict: Result<Thumbprint, Refused>) {
        let outcome = verdict.map_or_else(Into::into, |_| ACCEPTED);
        self.proofs.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub fn observe(
        &self,
        (method, route, status): (&'static str, &str, u16),
        problem: Option<&Problem>,
        sign_in: Option<&SignIn>,
        took: Duration,
    ) {
        if let Some(sign_in) = sign_in {
            self.sign_ins.get_or_create(sign_in).inc();
        }
        let labels = [("route", route.to_owned())];
        match route {
            "/api/v1/auth/refresh" | "/api/v1/auth/token" => {
                let outcome = refresh(problem);
                self.refreshes.get_or_create(&[("outcome", outcome)]).inc()
            }
            _ => 0,
        };
        // 503 from `/readyz` is a regular answer.
        if let Some(problem) = problem
            && route != "/readyz"
        {
            self.problems
                .get_or_create(&[("error", problem.kind.entry().error)])
                .inc();
        }
        if problem.is_some_and(|problem| problem.kind == ErrorCode::RateLimited) {
            self.limited.get_or_create(&labels).inc();
        }
        self.durations
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
        // Rocket's methods are a fixed set, so clients cannot add labels.
        self.requests
            .get_or_create(&RequestLabels {
                method,
                route: route.to_owned(),
                status,
            })
            .inc();
    }

    /// Returns all metrics.
    pub fn text(&self, format: Format) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(if format == Format::Prometheus {
            prometheus(&text)
        } else {
            text
        })
    }
}

/// The text formats of metrics that scrapers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus's own, version 0.0.4.
    Prometheus,
}

/// Rewrites `OpenMetrics` in Prometheus's format, whose families have the names of their samples,
/// and neither units nor an end.
fn prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let Some(about) = line.strip_prefix("# ") else {
            text.extend([line, "\n"]);
            continue;
        };
        if let Some(described) = about.strip_prefix("HELP ") {
            help = described.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = about
            .strip_prefix("TYPE ")
            .and_then(|typed| typed.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            text.extend([
                "# HELP ",
                name,
                suffix,
                " ",
                help,
                "\n# TYPE ",
                name,
                suffix,
                " ",
                kind,
                "\n",
            ]);
        }
    }
    text
}

/// Registers a metric, and returns it.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl SignIn {
    /// Returns the result of a request to this route, if it is the route of sign-ins.
    pub fn of(request: &Request<'_>, route: &str, problem: Option<&Problem>) -> Option<Self> {
        if route != "/api/v1/auth/oauth/<_>" {
            return None;
        }
        let name = request.uri().path().segments().last().unwrap_or_default();
        let providers = request.rocket().state::<Providers>();
        let known = providers.is_some_and(|providers| providers.get(name).is_some());
        let provider = if known {
            name.to_owned()
        } else {
            String::new()
        };
        let outcome = match problem {
            Some(problem) if problem.by_token => NO_VERDICT,
            Some(problem) => problem.kind.entry().error,
            None => request.local_cache(|| Outcome::SignedIn).into(),
        };
        Some(Self { provider, outcome })
    }
}

fn refresh(problem: Option<&Problem>) -> &'static str {
    let Some(problem) = problem else {
        return ROTATED;
    };
    problem
        .not_refreshed
        .map_or(problem.kind.entry().error, Into::into)
}
