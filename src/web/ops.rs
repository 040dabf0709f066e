//! Endpoints for operators and their monitoring: liveness, readiness and metrics.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use rocket::http::{ContentType, Status};
use rocket::request::{FromRequest, Outcome, Request};
use rocket::response::{self, Responder};
use rocket::serde::json::Json;
use rocket::{State, get};
use serde::Serialize;
use sqlx::ConnectOptions;
use tokio::sync::Mutex;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::guard::client_address;
use super::guard::shared::request_guard;
use super::http::fields;
use super::http::stage::Stage;
use super::metrics::{Format, Metrics};
use super::openapi::problems::{NoErrors, Problems, errors};
use super::problem::{ErrorCode, Problem};
use super::resource::resource;
use crate::config::Observers;
use crate::database::error::reason;
use crate::database::migrations::Standing;
use crate::database::{self, Database, migrations};
use crate::keys::KeyRing;

/// The longest wait for the database. Probes come every few seconds.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The version of `OpenMetrics`.
const OPEN_METRICS: &str = "1.0.0";

resource!("Operation": livez, readyz, metrics);

/// Check liveness
///
/// Returns 200 as long as the process can answer.
#[utoipa::path(
    responses((status = 200, description = "The process is alive.", body = String, content_type = "text/plain", example = "ok"),
              Problems<NoErrors>),
)]
#[get("/livez")]
const fn livez() -> &'static str {
    "ok\n"
}

/// The state of the service and of its dependencies: `ok`, or the reason why not.
#[derive(Serialize, ToSchema)]
struct Readiness {
    service: &'static str,
    database: &'static str,
    migrations: &'static str,
    keys: &'static str,
    /// The error on connecting to the database, for the log.
    #[serde(skip)]
    cause: Option<String>,
}

impl<'r> Responder<'r, 'static> for Readiness {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let Self {
            service,
            database,
            migrations,
            keys,
            ref cause,
        } = self;
        let ready = [service, database, migrations, keys]
            .iter()
            .all(|check| *check == "ok");
        let mut status = Status::Ok;
        if !ready {
            // The log and the metrics must not report this as an internal error.
            let problem = Problem::new(ErrorCode::ServiceUnavailable, "the service is not ready");
            let cause = cause
                .as_ref()
                .map(|cause| format!(" ({cause})"))
                .unwrap_or_default();
            let why = format!(
                "service: {service}, database: {database}{cause}, migrations: {migrations}, keys: {keys}"
            );
            status = problem.logged(why).keep(request).status();
        }
        (status, Json(self)).respond_to(request)
    }
}

/// Check readiness
///
/// Returns 200 if the service can sign users in and is not shutting down.
#[utoipa::path(
    responses((status = 200, description = "The service is ready.", body = Readiness,
               example = json!({ "service": "ok", "database": "ok", "migrations": "ok", "keys": "ok" })),
              (status = 503, description = "The service is not ready. The members that are not `ok` state the reason; `read_only` is a \
                             standby database, and `disk_full` one that has no space left.", body = Readiness,
               example = json!({ "service": "ok", "database": "failed", "migrations": "unknown", "keys": "ok" })),
              Problems<NoErrors>),
)]
#[get("/readyz")]
async fn readyz(probe: &State<Probe>, keys: &State<KeyRing>, stage: &State<Stage>) -> Readiness {
    let unknown = Answer {
        database: "failed",
        migrations: "unknown",
        cause: None,
    };
    let Answer {
        database,
        migrations,
        cause,
    } = if stage.has_database() {
        probe.answer().await
    } else {
        unknown
    };
    let keys = if keys.published().is_empty() {
        "none"
    } else {
        "ok"
    };
    let service = match (stage.is_draining(), stage.has_started()) {
        (true, _) => "shutting_down",
        (false, true) => "ok",
        (false, false) => "starting",
    };
    Readiness {
        service,
        database,
        migrations,
        keys,
        cause,
    }
}

/// Checks the database for readiness: on a connection of its own, and with one check at a time,
/// however many requests wait for it.
#[derive(Debug)]
pub struct Probe {
    database: Database,
    /// The last answer, and when it came.
    last: Mutex<Option<(Instant, Answer)>>,
}

/// The states of the database and of its schema.
#[derive(Debug, Clone)]
struct Answer {
    database: &'static str,
    migrations: &'static str,
    cause: Option<String>,
}

impl Probe {
    pub fn new(database: Database) -> Self {
        Self {
            database,
            last: Mutex::default(),
        }
    }

    /// Returns an answer that came since the caller asked.
    async fn answer(&self) -> Answer {
        let asked_at = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((came_at, answer)) = &*last
            && *came_at >= asked_at
        {
            return answer.clone();
        }
        let answer = match timeout(TIMEOUT, self.ask()).await {
            Ok(Ok((database, migrations))) => Answer {
                database,
                migrations,
                cause: None,
            },
            Ok(Err(error)) => Answer {
                database: "failed",
                migrations: "unknown",
                cause: Some(error.to_string()),
            },
            Err(_) => Answer {
                database: "no answer in time",
                migrations: "unknown",
                cause: self.refusal().await,
            },
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }

    /// Returns the error on connecting, if the server refuses at once. The pool would try again,
    /// and report only that it took too long.
    async fn refusal(&self) -> Option<String> {
        let options = self.database.pool().connect_options();
        let refused = timeout(TIMEOUT / 5, options.connect()).await.ok()?;
        refused.err().map(|error| reason(&error))
    }

    async fn ask(&self) -> Result<(&'static str, &'static str), database::Error> {
        let Standing { writable, migrated } = migrations::standing(&self.database).await?;
        let database = match writable {
            false => "read_only",
            true if self.database.is_full().await => "disk_full",
            true => "ok",
        };
        Ok((database, if migrated { "ok" } else { "missing" }))
    }
}

/// A request from a network that may read the metrics. They identify no user, but show the load and
/// the failures.
///
/// - **Succeeds** when the client's IP address is in `metrics.networks`.
/// - **Fails** with 404 otherwise.
struct Observer;

request_guard!(Observer, |request| {
    let observers: Option<&Observers> = request.rocket().state();
    let near = client_address::of(request)
        .zip(observers)
        .is_some_and(|(ip, networks)| networks.include(ip));
    near.then_some(Self)
        .ok_or_else(|| Problem::new(ErrorCode::NotFound, "this path does not exist"))
});
errors!(Observer: [ErrorCode::NotFound]);

/// Read the metrics
///
/// Returns the metrics in the `OpenMetrics` 1.0 format, or in Prometheus's format 0.0.4 if `Accept`
/// prefers `text/plain`. Only IP addresses in `metrics.networks` may read them.
#[utoipa::path(
    responses((status = 200, description = "The metrics.", content(
        (String = "application/openmetrics-text",
         example = "# HELP vestibule_build Version of the running program.\n…\n# EOF\n"),
        (String = "text/plain", example = "# HELP vestibule_build_info Version of the running program.\n…\n"),
    )), Problems<Observer>),
)]
#[get("/metrics")]
fn metrics(
    _observer: Observer,
    metrics: &State<Metrics>,
    format: Format,
) -> Result<Exposition, Status> {
    let text = metrics
        .text(format)
        .map_err(|_| Status::InternalServerError)?;
    Ok(Exposition { format, text })
}

/// Metrics as text.
struct Exposition {
    format: Format,
    text: String,
}

impl<'r> Responder<'r, 'static> for Exposition {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let (media_type, version) = match self.format {
            Format::OpenMetrics => (
                ContentType::new("application", "openmetrics-text"),
                OPEN_METRICS,
            ),
            Format::Prometheus => (ContentType::new("text", "plain"), "0.0.4"),
        };
        let media_type = media_type.with_params([("version", version), ("charset", "utf-8")]);
        let mut response = (media_type, self.text).respond_to(request)?;
        response.set_raw_header("Vary", "Accept");
        Ok(response)
    }
}

/// - **Succeeds** always: `OpenMetrics`, unless the client prefers the other format.
#[rocket::async_trait]
impl<'r> FromRequest<'r> for Format {
    type Error = Infallible;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Infallible> {
        // Parsers of an older OpenMetrics fail at types such as `info`. Parsers of a newer text
        // format read 0.0.4, too.
        let prefers_text = fields::preference(request, "text", "plain", None)
            > fields::preference(
                request,
                "application",
                "openmetrics-text",
                Some(OPEN_METRICS),
            );
        Outcome::Success(if prefers_text {
            Self::Prometheus
        } else {
            Self::OpenMetrics
        })
    }
}
