//! The composition root: builds the service, mounts the routes and attaches the fairings.

pub mod check;
pub mod drain;
mod event_log;
pub mod open_files;
pub mod reload;
pub mod standby;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use figment::Figment;
use rocket::error::ErrorKind;
use rocket::fairing::AdHoc;
use rocket::futures::future::OptionFuture;
use rocket::{Build, Ignite, Rocket};
use rocket_db_pools::Pool;
use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;
use utoipa::openapi::OpenApi;

use self::drain::Stop;
use crate::accounts::{Issuer, ProofNonces, SharedStatements};
use crate::admin::Admin;
use crate::admin::api::guard::KnownKeys;
use crate::config::{self, Config, Maintenance};
use crate::database::pool::Place;
use crate::database::servers::Servers;
use crate::database::{self, Database, migrations, pool, pooler};
use crate::events::EventKind;
use crate::events::counts::keep_counting;
use crate::events::partitions;
use crate::events::record::record_command;
use crate::events::refusals::Refusals;
use crate::keys::{KeyRing, signing_key};
use crate::provider::proxy::Proxy;
use crate::provider::{ClientError, Providers};
use crate::provider_tokens::ProviderTokens;
use crate::prune::{Failures, Incomplete, Limits, Pruned, keep_pruning};
use crate::telemetry::otlp::{self, Traces};
use crate::web::database::{Db, PostgresPool};
use crate::web::guard::event_sender::KnownSenders;
use crate::web::guard::json_body::Budget;
use crate::web::http::rate_limit::RateLimits;
use crate::web::http::reject_empty_segments::ExactPath;
use crate::web::http::request_log::RequestLog;
use crate::web::http::stage::Stage;
use crate::web::http::{
    catcher, cors, deadline, proof_nonce, rate_limit_fields, templates, traces,
};
use crate::web::metrics::Metrics;
use crate::web::ops::Probe;
use crate::web::{self, api, data_deletion, openapi, ops, problem, well_known};
use crate::webhooks::{self, Webhooks};
use crate::{admin, background, prune, telemetry};

/// The section of the database's settings.
const DATABASE: &str = "databases.vestibule";

/// The timeout for the work left after the last response. A service manager kills the process if it
/// takes too long.
const TIMEOUT: Duration = Duration::from_secs(5);

const POOLER_REMEDY: &str = "use PgBouncer 1.21 or newer with max_prepared_statements set, or pool_mode = session, or connect to PostgreSQL itself";
const LIMITS_REMEDY: &str = "set them for the role: ALTER ROLE … SET lock_timeout = '2s'; ALTER ROLE … SET statement_timeout = '10s'; ALTER ROLE … SET idle_in_transaction_session_timeout = '10s'";

/// The reason why the service does not start, in one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that only some commands need is missing or wrong.
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Settings(#[from] pool::Error),
    #[error("the connection to the database failed: {}; {}", database::error::reason(cause), place.remedy(cause))]
    Database {
        /// The database as the settings name it.
        place: Place,
        /// The error of the network or of PostgreSQL.
        cause: sqlx::Error,
    },
    #[error(
        "the connection pooler mixes up the prepared statements of its clients; {POOLER_REMEDY}"
    )]
    Pooler,
    #[error("the migration of the schema failed: {0}")]
    Migrate(#[from] migrations::Failure),
    #[error(transparent)]
    Store(#[from] database::Error),
    #[error(transparent)]
    SigningKey(#[from] signing_key::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    WebhookClient(#[from] webhooks::ClientError),
    #[error(transparent)]
    Otlp(#[from] otlp::Error),
    #[error(
        "the service cannot listen on {address}: {cause}; set `ROCKET_PORT` / `port` and `ROCKET_ADDRESS` / `address`, or stop the process that uses the port"
    )]
    Listen {
        /// The IP address and port.
        address: SocketAddr,
        /// The operating system's error.
        cause: io::Error,
    },
    #[error("the server failed to start: {0}")]
    Rocket(#[from] Box<rocket::Error>),
}

/// Brings the database's schema up to date, and returns the migrations that were applied. Instances
/// that start together take turns.
///
/// # Errors
/// The database cannot be used, or this program does not know its schema.
pub async fn migrate(figment: &Figment) -> Result<Vec<i64>, Error> {
    let settings = settings(figment)?;
    settings.warn_of_plain_text();
    let servers = settings.servers;
    let failed = failed(&servers);
    let (options, mut turn) = servers.connect().await.map_err(&failed)?;
    // An index on millions of rows takes longer than the time limits for requests. Its creation
    // waits for all running transactions to end, and blocks no transaction.
    let patient = options.options([("statement_timeout", "0"), ("lock_timeout", "0")]);
    let mut connection = patient.connect().await.map_err(&failed)?;
    if !pooler::keeps_statements(&mut turn, &mut connection).await? {
        return Err(Error::Pooler);
    }
    if !pooler::keeps_time_limits(&mut turn).await? {
        tracing::warn!("the connection pooler drops the service's timeouts; {LIMITS_REMEDY}");
    }
    let held = migrations::take_turn(&mut turn).await?;
    let applied = migrations::apply(&mut connection).await?;
    held.rollback().await.map_err(&failed)?;
    match partitions::keep(&mut turn, None).await {
        // New events are in the default partition until the service prunes.
        Err(error @ (database::Error::Unavailable(_) | database::Error::Raced(_))) => {
            tracing::warn!(%error, "the partitions of `events` were not changed, which will be retried");
        }
        kept => kept?,
    }
    turn.close().await.map_err(&failed)?;
    connection.close().await.map_err(&failed)?;
    Ok(applied)
}

/// Returns the migrations that [`migrate`] would apply.
pub async fn missing_migrations(figment: &Figment) -> Result<Vec<i64>, Error> {
    let servers = settings(figment)?.servers;
    let (_, mut connection) = servers.connect().await.map_err(failed(&servers))?;
    let missing = migrations::difference(&mut connection).await?.missing;
    connection.close().await.map_err(failed(&servers))?;
    Ok(missing)
}

/// Opens the database for a command. It first makes one connection of its own, because a pool would
/// only report that it got no connection in time.
pub async fn database(figment: &Figment) -> Result<Database, Error> {
    let settings = settings(figment)?;
    let failed = failed(&settings.servers);
    let database = Database::open(settings, None);
    let connection = database.reach().await.map_err(&failed)?;
    connection.close().await.map_err(&failed)?;
    Ok(database)
}

/// Returns the database that the settings name.
pub fn place(figment: &Figment) -> Result<Place, Error> {
    Ok(Place::of(&settings(figment)?.servers))
}

/// Returns the conversion of an error that a connection to these servers met.
fn failed(servers: &Servers) -> impl Fn(sqlx::Error) -> Error + use<> {
    let place = Place::of(servers);
    move |cause| Error::Database {
        place: place.clone(),
        cause,
    }
}

fn settings(figment: &Figment) -> Result<pool::Settings, Error> {
    Ok(pool::Settings::read(&figment.focus(DATABASE))?)
}

/// Deletes expired sessions, old events and the traces of deleted users when an operator asks for
/// it. The operator's settings may keep less than the service's.
///
/// # Errors
/// Some steps failed; the others have run.
pub async fn prune(database: &Database, settings: &Maintenance) -> Result<Pruned, Incomplete> {
    if let Err(error) = record_command(database, EventKind::Pruned).await {
        tracing::warn!(%error, "the event of the clean-up could not be recorded");
    }
    prune::prune(database, limits(settings.events, &settings.session)).await
}

const fn limits(events: config::Events, session: &config::Session) -> Limits {
    Limits {
        event_days: events.retention_days,
        sessions_per_identity: session.max_per_identity,
        refresh_token_ttl: session.refresh_token_ttl,
        absolute_ttl: session.absolute_ttl,
    }
}

/// The rest of the start, which needs the database.
#[derive(Debug)]
pub struct Start {
    figment: Figment,
    database: Database,
    keys: KeyRing,
    limits: Limits,
    prune_failures: Failures,
    logs_events: bool,
    webhooks: Webhooks,
    provider_tokens: ProviderTokens,
    stage: Stage,
}

impl Start {
    /// Brings the schema up to date and opens the service.
    pub async fn finish(self) -> Result<(), Error> {
        self.stage.reach_database();
        migrate(&self.figment).await?;
        self.open().await
    }

    /// Opens the service on a database whose schema is up to date.
    pub async fn open(self) -> Result<(), Error> {
        self.keys.open().await?;
        let database = self.database;
        self.webhooks.open(&database).await?;
        self.provider_tokens.open(&database).await?;
        let counted = database.clone();
        background::spawn("event counts", move || keep_counting(counted.clone()));
        let pruned = database.clone();
        let limits = self.limits;
        let failures = self.prune_failures;
        background::spawn("pruning", move || {
            keep_pruning(pruned.clone(), limits, failures.clone())
        });
        if self.logs_events {
            let logged = database.clone();
            background::spawn("event log", move || event_log::keep_logging(logged.clone()));
        }
        background::spawn("database servers", move || database.clone().follow());
        self.stage.end_start();
        Ok(())
    }
}

/// Returns the OpenAPI description of the whole service.
pub fn description() -> OpenApi {
    let mut whole = web::description(admin::api::description());
    webhooks::description::describe(&mut whole);
    whole
}

/// Builds the service, which answers 503 until its start is complete. It does not use the database
/// yet.
pub async fn build(config: Config) -> Result<(Rocket<Build>, Start), Error> {
    let db = Db::from(PostgresPool::init(&config.figment.focus(DATABASE)).await?);
    let database = Database::clone(&db);
    let shared = SharedStatements::open(&database, &config.session, &config.secret_key);
    let ttl = config.session.access_token_ttl;
    let keys = KeyRing::new(database.clone(), &config.secret_key, config.keys)?;
    let metadata = well_known::Metadata::new(&config.public_url);
    let admin = Admin::new(&config.admin_provider, &config.public_url);
    let issuer = Issuer::new(keys.clone(), config.public_url, ttl);
    let providers = Providers::new(config.providers)?;
    if let Some(proxy) = Proxy::of_environment()? {
        let variable = proxy.variable;
        let exceptions = &proxy.exceptions;
        tracing::info!(%proxy, variable, exceptions, "providers are called through a proxy");
    }
    let refusals = Refusals::open(database.clone());
    let webhooks = Webhooks::new(config.webhooks)?;
    let provider_tokens =
        ProviderTokens::new(&providers, &config.secret_key).map_err(signing_key::Error::from)?;
    let times = telemetry::database::times();
    let prune_failures = prune::failures();
    let metrics = Metrics::new(
        database.clone(),
        times,
        keys.clone(),
        providers.clone(),
        &refusals,
        &prune_failures,
        (&webhooks, &provider_tokens),
    );
    let stage = Stage::new(config.drain);
    let start = Start {
        figment: config.figment.clone(),
        database: database.clone(),
        keys: keys.clone(),
        limits: limits(config.events, &config.session),
        prune_failures,
        logs_events: config.events.log,
        webhooks: webhooks.clone(),
        provider_tokens: provider_tokens.clone(),
        stage: stage.clone(),
    };
    let figment = config.figment.join(("template_dir", templates::dir()));
    let rocket = rocket::custom(drain::take_over(figment))
        .manage(stage)
        .manage(metrics)
        .manage(config.observers)
        .manage(db)
        .manage(Probe::new(database.probe()))
        .manage(shared)
        .manage(admin)
        .manage(KnownKeys::default())
        .manage(keys)
        .manage(issuer)
        .manage(ProofNonces::new(&config.secret_key))
        .manage(metadata)
        .manage(openapi::Document::new(description))
        .manage(refusals)
        .manage(config.session)
        .manage(config.events)
        .manage(config.proxies)
        .manage(config.web)
        .manage(RateLimits::open(&config.rate_limit))
        .manage(KnownSenders::default())
        .manage(Budget::default())
        .manage(providers)
        .manage(webhooks)
        .manage(provider_tokens)
        .attach(RequestLog::default())
        .attach(ExactPath)
        .attach(rate_limit_fields::fairing())
        .attach(proof_nonce::fairing())
        .attach(templates::fairing())
        .attach(cors::fairing())
        .mount("/", deadline::routes(ops::RESOURCE.routes()))
        .mount("/api/v1", deadline::once_started(api::routes()))
        .mount(
            "/api/v1/admin",
            deadline::once_started(admin::api::routes()),
        )
        .mount("/", deadline::once_started(well_known::RESOURCE.routes()))
        .mount("/admin", deadline::once_started(admin::pages::routes()))
        .register("/admin", admin::pages::catchers())
        .mount(
            "/",
            deadline::once_started(data_deletion::RESOURCE.routes()),
        )
        .mount("/", problem::pages::RESOURCE.routes())
        .register("/", catcher::catchers());
    let rocket = match Traces::open()? {
        Some(traces) => rocket.manage(traces).attach(traces::fairing()),
        None => rocket,
    };
    Ok((rocket, start))
}

/// Serves until shutdown is requested (see `app/drain.rs`). Then it closes the database once the last
/// response is sent and the last refusal written, or after a timeout.
///
/// # Errors
/// The server cannot start, for instance because the port is taken.
pub async fn launch(
    rocket: Rocket<Build>,
    stop: Stop,
    lifted_off: impl FnOnce(&Rocket<rocket::Orbit>) + Send + Sync + 'static,
) -> Result<(), Error> {
    let rocket: Rocket<Ignite> = rocket
        .attach(drain::fairing(stop))
        .attach(AdHoc::on_liftoff("lifted off", |rocket| {
            Box::pin(async move { lifted_off(rocket) })
        }))
        .ignite()
        .await
        .map_err(Box::new)?;
    let database = rocket.state::<Db>().map(|db| Database::clone(db));
    let refusals = rocket.state::<Refusals>().and_then(Refusals::writer);
    let webhooks = rocket.state::<Webhooks>().cloned();
    let provider_tokens = rocket.state::<ProviderTokens>().cloned();
    let traces = rocket.state::<Traces>().cloned();
    let address = SocketAddr::new(rocket.config().address, rocket.config().port);
    drop(
        rocket
            .launch()
            .await
            .map_err(|error| not_launched(error, address))?,
    );
    let end = async {
        let messages = webhooks.as_ref().map(Webhooks::close);
        let tokens = provider_tokens.as_ref().map(ProviderTokens::close);
        tokio::join!(OptionFuture::from(messages), OptionFuture::from(tokens));
        if let Some(writer) = refusals {
            // A panic there is in the log already; the task has ended in any case.
            let _ = writer.await;
        }
        if let Some(database) = database {
            database.close().await;
        }
    };
    if timeout(TIMEOUT, end).await.is_err() {
        tracing::warn!("the last refused sign-ins were not recorded before the shutdown");
    }
    if let Some(traces) = traces {
        // A panic there is in the log already.
        let _ = tokio::task::spawn_blocking(move || traces.close()).await;
    }
    Ok(())
}

fn not_launched(error: rocket::Error, address: SocketAddr) -> Error {
    match error.kind() {
        // The cause cannot be moved out of Rocket's error.
        ErrorKind::Bind(cause) => {
            let cause = cause
                .raw_os_error()
                .map_or_else(|| cause.kind().into(), io::Error::from_raw_os_error);
            Error::Listen { address, cause }
        }
        _ => Error::Rocket(Box::new(error)),
    }
}
