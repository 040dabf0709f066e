//! One log line for each request.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocket::fairing::{Fairing, Info, Kind};
use rocket::http::Header;
use rocket::{Data, Orbit, Request, Response, Rocket};
use tokio::time::interval;

use super::request_id::RequestId;
use crate::background;
use crate::domain::network;
use crate::web::guard::client_address;
use crate::web::guard::verified_identity::ProviderCall;
use crate::web::metrics::{Metrics, SignIn};
use crate::web::{ErrorCode, Problem};

/// The routes that monitoring requests every second.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/metrics"];
/// The time between two lines of a probe that keeps failing for one cause.
const AGAIN: Duration = Duration::from_secs(30);

/// The most lines of one kind that clients can cause in each round. A flood of requests must not
/// flood the log.
const LINES: u64 = 100;
const ROUND: Duration = Duration::from_secs(10);

/// Gives every request its id, counts it and writes its log line.
///
/// The line names the route and not the path, so that a token in the path or query stays out of the
/// log. Probes have a line when they begin to fail, fail for another cause or succeed again, and
/// twice a minute while they fail. Of the redirects, and of the refusals for each error, a hundred
/// in ten seconds have a line, and the others are counted in one.
#[derive(Debug, Default)]
pub struct RequestLog {
    /// The redirects and refusals of this round.
    caused: Arc<Caused>,
    /// The causes of the probes that fail, by their routes, and the times of their latest lines.
    failing: Mutex<BTreeMap<&'static str, (String, Instant)>>,
}

impl RequestLog {
    /// Returns `true` if the request has a line of its own. `cause` is the cause of a failure of
    /// the service.
    fn tells(&self, route: &str, cause: Option<&str>) -> bool {
        let Some(probe) = PROBES.into_iter().find(|probe| *probe == route) else {
            return true;
        };
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cause) = cause else {
            return failing.remove(probe).is_some();
        };
        let known = failing
            .get(probe)
            .is_some_and(|(last, at)| last == cause && at.elapsed() < AGAIN);
        if !known {
            failing.insert(probe, (cause.to_owned(), Instant::now()));
        }
        !known
    }
}

/// The numbers of requests by their kind: an error, or `redirect`.
#[derive(Debug, Default)]
struct Caused(Mutex<BTreeMap<&'static str, u64>>);

impl Caused {
    /// Counts a request. Returns `true` if it has a line.
    fn has_line(&self, kind: &'static str) -> bool {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.entry(kind).or_default();
        *number += 1;
        *number <= LINES
    }

    fn tell(&self) {
        let numbers = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (kind, number) in numbers.into_iter().filter(|(_, number)| *number > LINES) {
            tracing::warn!(
                kind,
                unlogged = number - LINES,
                "requests without a line of their own"
            );
        }
    }
}

impl Drop for Caused {
    fn drop(&mut self) {
        self.tell();
    }
}

#[rocket::async_trait]
impl Fairing for RequestLog {
    fn info(&self) -> Info {
        Info {
            name: "request log",
            kind: Kind::Liftoff | Kind::Request | Kind::Response,
        }
    }

    async fn on_liftoff(&self, _: &Rocket<Orbit>) {
        let caused = Arc::downgrade(&self.caused);
        background::spawn("request log", move || {
            let caused = caused.clone();
            async move {
                let mut rounds = interval(ROUND);
                loop {
                    rounds.tick().await;
                    let Some(caused) = caused.upgrade() else {
                        return;
                    };
                    caused.tell();
                }
            }
        });
    }

    async fn on_request(&self, request: &mut Request<'_>, _: &mut Data<'_>) {
        RequestId::of(request);
        if let Some(metrics) = request.rocket().state::<Metrics>() {
            metrics.arrived(request);
        }
    }

    async fn on_response<'r>(&self, request: &'r Request<'_>, response: &mut Response<'r>) {
        let id = RequestId::of(request);
        response.set_header(Header::new("X-Request-Id", id.as_str().to_owned()));
        let status = response.status().code;
        let method = request.method().as_str();
        let route = request.route().map_or("-", |route| route.uri.as_str());
        let took = id.started().elapsed();
        let problem = (status >= 400).then(|| Problem::unexplained(status).keep(request));
        let sign_in = SignIn::of(request, route, problem);
        if let Some(metrics) = request.rocket().state::<Metrics>() {
            metrics.observe((method, route, status), problem, sign_in.as_ref(), took);
        }
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let ms = millis(took);
        let request_id = id.as_str();
        let call = ProviderCall::of(request);
        let provider_ms = call.map(|call| millis(call.took));
        let outcome = sign_in.as_ref().map(|sign_in| sign_in.outcome);
        let provider = sign_in
            .map(|sign_in| sign_in.provider)
            .filter(|provider| !provider.is_empty());
        let provider = provider.or_else(|| call.map(|call| call.provider.clone()));
        // A field without a value is not in the line.
        macro_rules! line {
            ($level:ident $(, $more:ident)*) => {
                tracing::$level!(
                    request_id, method, route, status, ms, provider, provider_ms, outcome, $($more,)* "request"
                )
            };
        }
        let Some(problem) = problem else {
            if status >= 300 && !self.caused.has_line("redirect") {
                return;
            }
            if self.tells(route, None) {
                line!(info);
            } else {
                tracing::debug!(request_id, method, route, status, ms, "request");
            }
            return;
        };
        let error = problem.kind.entry().error;
        let cause = problem.log.as_deref().unwrap_or(&problem.detail);
        // A failure that the caller may have caused is not a warning.
        if status < 500 || problem.by_token {
            if self.caused.has_line(error) {
                let limited = problem.kind == ErrorCode::RateLimited;
                let network = client_address::of(request)
                    .filter(|_| limited)
                    .and_then(network::around);
                let network = network.map(tracing::field::display);
                line!(info, error, cause, network);
            }
        } else if self.tells(route, Some(cause)) {
            line!(warn, error, cause);
        } else {
            tracing::debug!(
                request_id, method, route, status, ms, error, cause, "request"
            );
        }
    }
}
