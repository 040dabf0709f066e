//! The connection pools on PostgreSQL, and their settings.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use figment::{self, Figment};
use log::LevelFilter;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};

use crate::config;
use crate::database::health::Health;
use crate::database::servers::Servers;
use crate::domain::database_url::{self, Mistake, Server};

/// The settings of the database, with their URL as the driver understands it.
#[derive(Debug)]
pub struct Settings {
    set: config::Database,
    /// The servers that the URL names.
    pub servers: Servers,
    connect_timeout: Duration,
}

/// The database that a URL names, as the driver understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Each server's host, or the directory of its Unix socket, and its port.
    pub servers: Vec<(String, u16)>,
    pub database: String,
}

impl Place {
    pub fn of(servers: &Servers) -> Self {
        let server =
            |options: &PgConnectOptions| (options.get_host().to_owned(), options.get_port());
        let one = servers.any();
        Self {
            servers: servers.all().iter().map(server).collect(),
            database: one
                .get_database()
                .unwrap_or_else(|| one.get_username())
                .to_owned(),
        }
    }
}

/// Phrases of the TLS library about the server's certificate, each with the remedy.
const CERTIFICATES: [(&str, &str); 4] = [
    (
        "UnknownIssuer",
        "set sslrootcert in DATABASE_URL, or PGSSLROOTCERT, to the file with the certificate authority that signed the server's \
         certificate",
    ),
    (
        "certificate expired",
        "renew the server's certificate, or correct this machine's clock",
    ),
    (
        "certificate not valid for name",
        "name the server in DATABASE_URL as its certificate does, or give it a certificate for this name",
    ),
    (
        "CaUsedAsEndEntity",
        "give the server a certificate that a certificate authority signed, instead of the authority's own",
    ),
];

impl Place {
    /// Returns the servers as a URL lists them.
    pub fn hosts(&self) -> String {
        self.servers
            .iter()
            .map(|(host, port)| format!("{host}:{port}"))
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Returns the operator's remedy for a failed connection.
    pub fn remedy(&self, cause: &sqlx::Error) -> String {
        let cause = cause.to_string();
        if let Some((_, remedy)) = CERTIFICATES.iter().find(|(words, _)| cause.contains(words)) {
            return (*remedy).into();
        }
        format!(
            "check DATABASE_URL, which names the database {self} (characters such as / # @ in a password are percent-encoded), \
             and that PostgreSQL is running and accepts the connection"
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self
            .servers
            .iter()
            .map(|(host, port)| format!("`{host}`, port {port}"));
        write!(
            f,
            "`{}` at {}",
            self.database,
            servers.collect::<Vec<_>>().join(", or ")
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    Verified,
    /// The certificate is verified, but may belong to another host.
    OfAnyHost,
    NotVerified,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database settings are invalid: {0}")]
    Settings(#[source] Box<figment::Error>),
    #[error(
        "configuration: `DATABASE_URL` / `databases.vestibule.url` is invalid: {0}; correct it"
    )]
    Url(#[source] sqlx::Error),
    #[error("configuration: `DATABASE_URL` / `databases.vestibule.url` {0}; {1}")]
    Parameter(String, String),
    #[error(transparent)]
    Sqlx(#[from] sqlx::Error),
}

impl Settings {
    /// Reads a figment focused on `databases.vestibule`.
    pub fn read(figment: &Figment) -> Result<Self, Error> {
        let set: config::Database = figment
            .extract()
            .map_err(|error| Error::Settings(Box::new(error)))?;
        let url = set.url.as_ref().map_or("", |url| url.expose());
        let url = database_url::read(url).map_err(|mistake| match mistake {
            Mistake::Unknown(name) => Error::Parameter(
                format!("has the unknown parameter `{name}`"),
                "remove it".into(),
            ),
            Mistake::Other(problem, remedy) => Error::Parameter(problem, remedy),
        })?;
        let servers = url
            .servers
            .iter()
            .map(Self::options)
            .collect::<Result<_, _>>()?;
        let connect_timeout = set.connect_timeout.map(u64::from).or(url.connect_timeout);
        Ok(Self {
            set,
            servers: Servers(servers),
            connect_timeout: Duration::from_secs(connect_timeout.unwrap_or(2)),
        })
    }

    /// Returns the options of any of the servers, which differ in host and port alone.
    fn connect_options(&self) -> PgConnectOptions {
        self.servers.any().clone()
    }

    fn options(server: &Server) -> Result<PgConnectOptions, Error> {
        // With `sslmode=verify-ca` alone, the driver uses the process's default crypto provider,
        // and panics without one. An error says that it is installed already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut options = PgConnectOptions::from_str(&server.url).map_err(Error::Url)?;
        if let Some(directory) = &server.socket {
            options = options.host(directory);
        }
        if options.get_application_name().is_none() {
            options = options.application_name("vestibule");
        }
        let options = options
            // No request waits for longer than a user would. The store maps these timeouts to its
            // errors.
            .options([
                ("lock_timeout", "2s"),
                ("statement_timeout", "10s"),
                ("idle_in_transaction_session_timeout", "10s"),
                // A statement that looks up a page or a message ends sooner than its compilation.
                ("jit", "off"),
            ]);
        // sqlx's events are for `telemetry::database` and never become log lines.
        let options = options.log_statements(LevelFilter::Trace);
        Ok(options.log_slow_statements(LevelFilter::Trace, Duration::MAX))
    }

    pub fn certificate(&self) -> Certificate {
        match self.servers.any().get_ssl_mode() {
            PgSslMode::VerifyFull => Certificate::Verified,
            PgSslMode::VerifyCa => Certificate::OfAnyHost,
            _ => Certificate::NotVerified,
        }
    }

    pub fn is_here(&self) -> bool {
        self.servers.all().iter().all(|server| {
            let host = server.get_host();
            host.starts_with('/')
                || host == "localhost"
                || host
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|ip| ip.is_loopback())
        })
    }

    /// Logs a warning if the connections to a remote database may be unencrypted.
    pub fn warn_of_plain_text(&self) {
        use PgSslMode::{Allow, Disable, Prefer};
        let plain = matches!(self.servers.any().get_ssl_mode(), Disable | Allow | Prefer);
        if plain && !self.is_here() {
            tracing::warn!(
                "connections to the remote database may be unencrypted; add sslmode=verify-full to DATABASE_URL, and sslrootcert for a private certificate authority"
            );
        }
    }

    /// Opens a connection pool for the statements that sign-ins and refreshes share. They read
    /// arrays, for which planning each time would cost more than a small batch, and look up each
    /// element by a key instead of scanning.
    pub(super) fn lanes(&self, connections: u32, health: &Arc<Health>) -> PgPool {
        let options = self.connect_options().options([
            // A batch must not wait long for one row's lock.
            ("lock_timeout", "50ms"),
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        self.pool_options(health)
            .max_connections(connections)
            .connect_lazy_with(options)
    }

    pub(super) fn pool(&self, health: &Arc<Health>) -> PgPool {
        // A small pool beats a large one: PostgreSQL's cores, not its connections, do the work.
        let options = self
            .pool_options(health)
            .max_connections(self.set.max_connections.unwrap_or(16));
        options.connect_lazy_with(self.connect_options())
    }

    /// Opens the pool for the readiness check.
    pub(super) fn probe(&self, health: &Arc<Health>) -> PgPool {
        let options = self.pool_options(health);
        options
            .min_connections(0)
            .max_connections(1)
            .connect_lazy_with(self.connect_options())
    }

    fn pool_options(&self, health: &Arc<Health>) -> PgPoolOptions {
        let health = health.clone();
        let idle_timeout = self.set.idle_timeout.map(u64::from);
        let idle_timeout = idle_timeout.map(Duration::from_secs);
        PgPoolOptions::new()
            .min_connections(self.set.min_connections)
            .acquire_time_level(LevelFilter::Trace)
            .acquire_timeout(self.connect_timeout)
            .idle_timeout(idle_timeout)
            // A test before each statement would cost a round trip, so only a connection that was
            // idle or is suspect is tested.
            .test_before_acquire(false)
            .before_acquire(move |connection, meta| {
                let health = health.clone();
                Box::pin(async move { Ok(health.is_usable(connection, meta.idle_for).await) })
            })
    }
}
