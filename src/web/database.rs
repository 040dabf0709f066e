//! The managed PostgreSQL pool: `rocket_db_pools`' `Pool` over a current sqlx, since its own sqlx
//! support pins a release with an advisory (RUSTSEC-2024-0363).

use std::str::FromStr;
use std::time::Duration;

use figment::{self, Figment};
use log::LevelFilter;
use rocket_db_pools::{Database, Pool};
use serde::Deserialize;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions, Postgres};

use super::openapi::problems::Fails;
use super::problem::Kind;
use crate::store::doubt;

/// The service's database, `[default.databases.vestibule]`.
#[derive(Debug, Database)]
#[database("vestibule")]
pub struct Db(PostgresPool);

impl Db {
    /// The pool. Take it late: whoever holds a connection while a provider is asked starves the
    /// others.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.0.0
    }
}

impl Fails for Db {
    fn kinds() -> impl Iterator<Item = Kind> {
        [Kind::ServiceUnavailable, Kind::InternalError].into_iter()
    }
}

/// The pool as `rocket_db_pools` wants it.
#[derive(Debug)]
pub struct PostgresPool(PgPool);

/// Settings of the database; durations in seconds.
#[derive(Debug, Deserialize)]
pub struct Settings {
    url: String,
    #[serde(default)]
    min_connections: u32,
    max_connections: Option<u32>,
    #[serde(default = "two")]
    connect_timeout: u64,
    idle_timeout: Option<u64>,
}

const fn two() -> u64 {
    2
}

/// The settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key is missing or of the wrong type.
    #[error("the database's settings cannot be read: {0}")]
    Settings(#[source] Box<figment::Error>),
    /// The URL cannot be understood.
    #[error("configuration: `DATABASE_URL` / `databases.vestibule.url` cannot be used: {0}; correct it")]
    Url(#[source] sqlx::Error),
    /// The database failed.
    #[error(transparent)]
    Sqlx(#[from] sqlx::Error),
}

impl Settings {
    /// Reads a figment focused on `databases.vestibule`.
    ///
    /// # Errors
    /// A key is missing or of the wrong type.
    pub fn read(figment: &Figment) -> Result<Self, Error> {
        figment.extract().map_err(|error| Error::Settings(Box::new(error)))
    }

    /// How to connect.
    ///
    /// # Errors
    /// The URL cannot be understood.
    pub fn connect_options(&self) -> Result<PgConnectOptions, Error> {
        let options = PgConnectOptions::from_str(&self.url)
            .map_err(Error::Url)?
            .application_name("vestibule")
            // No request waits for longer than a person would; see the store's errors.
            .options([
                ("lock_timeout", "2s"),
                ("statement_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "10s"),
            ]);
        // Not for the log, which never has a statement: for `telemetry::database`.
        let options = options.log_statements(LevelFilter::Trace);
        Ok(options.log_slow_statements(LevelFilter::Trace, Duration::MAX))
    }

    /// Whether the database is on this machine.
    ///
    /// # Errors
    /// The URL cannot be understood.
    pub fn is_here(&self) -> Result<bool, Error> {
        let options = self.connect_options()?;
        let host = options.get_host();
        Ok(options.get_socket().is_some()
            || host.starts_with('/')
            || host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()))
    }

    /// Says so in the log when what passes between here and the database may be read on the way.
    ///
    /// # Errors
    /// The URL cannot be understood.
    pub fn warn_of_plain_text(&self) -> Result<(), Error> {
        let options = self.connect_options()?;
        let sealed = matches!(
            options.get_ssl_mode(),
            PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull
        );
        if !self.is_here()? && !sealed {
            tracing::warn!(
                "the database is on another machine and its connections may be unencrypted; add sslmode=verify-full to DATABASE_URL, and sslrootcert where the authority is your own"
            );
        }
        Ok(())
    }

    /// Opens a pool for the statements that sign-ins and refreshes share. They read arrays, for which planning anew would
    /// cost more than a small batch, and look up each element by a key, whatever the planner thinks of the table's size.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub fn lanes(&self, connections: u32) -> Result<PgPool, Error> {
        let options = self.connect_options()?.options([
            // Whoever waits for a row waits by themselves, and not everybody with them.
            ("lock_timeout", "50ms"),
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("jit", "off"),
        ]);
        Ok(self.pool_options().max_connections(connections).connect_lazy_with(options))
    }

    fn pool(&self) -> Result<PgPool, Error> {
        // A small pool beats a large one: PostgreSQL's cores, not its connections, do the work.
        let options = self.pool_options().max_connections(self.max_connections.unwrap_or(16));
        Ok(options.connect_lazy_with(self.connect_options()?))
    }

    fn pool_options(&self) -> PgPoolOptions {
        let idle = Duration::from_secs(1);
        PgPoolOptions::new()
            .min_connections(self.min_connections)
            .acquire_time_level(LevelFilter::Trace)
            .acquire_timeout(Duration::from_secs(self.connect_timeout))
            .idle_timeout(self.idle_timeout.map(Duration::from_secs))
            // To ask before each statement would be a round trip of its own. Only a connection that has rested, or
            // is in doubt, is asked whether it is sound.
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                Box::pin(async move {
                    let trusted = meta.idle_for < idle && !doubt::prevails();
                    Ok(trusted || doubt::is_sound(connection).await.unwrap_or(false))
                })
            })
            .after_release(|connection, _| {
                Box::pin(async move { Ok(!doubt::prevails() || doubt::is_sound(connection).await?) })
            })
    }
}

#[rocket::async_trait]
impl Pool for PostgresPool {
    type Connection = PoolConnection<Postgres>;
    type Error = Error;

    async fn init(figment: &Figment) -> Result<Self, Error> {
        Ok(Self(Settings::read(figment)?.pool()?))
    }

    async fn get(&self) -> Result<Self::Connection, Error> {
        Ok(self.0.acquire().await?)
    }

    /// Rocket calls this while requests are still in flight; closing waits for their connections
    /// and refuses new ones, which would fail them. `service` closes the pool when all is done.
    async fn close(&self) {}
}
