//! The servers of the database, of which one is the primary. The service finds it as libpq's
//! `target_session_attrs=read-write` does (PostgreSQL, "Parameter Key Words"), once for all
//! connections, since the driver knows one server.

use std::time::Duration;
use std::{fmt, io};

use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions, Connection, PgConnection};
use time::OffsetDateTime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::database::error::Error;
use crate::database::error::reason;
use crate::database::health::{Health, is_sound};

const TIMEOUT: Duration = Duration::from_secs(3);
/// The pause between two checks of the primary, and between two searches for it.
const PAUSE: Duration = Duration::from_millis(500);

/// The servers in the order of the URL; at least one.
#[derive(Clone, Default)]
pub struct Servers(pub(super) Vec<PgConnectOptions>);

/// Shows hosts and ports: the driver's options have the password.
impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.0.iter().map(|it| (it.get_host(), it.get_port()));
        f.debug_list().entries(servers).finish()
    }
}

impl Servers {
    pub fn all(&self) -> &[PgConnectOptions] {
        &self.0
    }

    pub fn any(&self) -> &PgConnectOptions {
        &self.0[0]
    }

    /// Returns all servers but one.
    pub fn but(&self, one: &PgConnectOptions) -> impl Iterator<Item = &PgConnectOptions> {
        self.0.iter().filter(|server| !is_same(server, one))
    }

    /// Connects to the server that accepts writes. A single server is taken as it is. The error of
    /// several servers contains each one's error.
    pub async fn connect(&self) -> Result<(PgConnectOptions, PgConnection), sqlx::Error> {
        if let [only] = &self.0[..] {
            return Ok((only.clone(), only.connect().await?));
        }
        let mut attempts: JoinSet<_> = self.0.iter().cloned().map(writable).collect();
        let mut failures = Vec::new();
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok((server, Ok(connection))) => return Ok((server, connection)),
                Ok((server, Err(error))) => {
                    let host = server.get_host();
                    let port = server.get_port();
                    failures.push(format!("{host}, port {port}: {}", reason(&error)));
                }
                Err(panicked) => failures.push(panicked.to_string()),
            }
        }
        failures.sort();
        Err(io::Error::other(format!(
            "none of the servers accepts writes ({})",
            failures.join("; ")
        ))
        .into())
    }

    /// Connects to the primary, and directs the pools to it.
    pub(super) async fn reach(&self, pools: [&PgPool; 3]) -> Result<PgConnection, sqlx::Error> {
        let (primary, connection) = self.connect().await?;
        let mut moved = false;
        for pool in pools {
            let options = pool.connect_options();
            if !is_same(&options, &primary) {
                pool.set_connect_options(
                    (*options)
                        .clone()
                        .host(primary.get_host())
                        .port(primary.get_port()),
                );
                moved = true;
            }
        }
        if moved {
            let database_host = primary.get_host();
            let database_port = primary.get_port();
            tracing::info!(
                database_host,
                database_port,
                "connections now go to this server, the primary"
            );
        }
        Ok(connection)
    }

    /// Directs the pools to the primary for ever: asks the primary twice a second, on a connection
    /// of its own, whether it accepts writes, and looks for another when it does not. Returns at
    /// once if there is one server.
    pub(super) async fn follow(&self, pools: [&PgPool; 3], health: &Health) {
        while self.0.len() > 1 {
            if let Ok(mut connection) = self.reach(pools).await {
                while is_sound(&mut connection).await.unwrap_or(false) {
                    sleep(PAUSE).await;
                }
                health.note_demotion();
            } else {
                sleep(PAUSE).await;
            }
        }
    }
}

fn is_same(one: &PgConnectOptions, other: &PgConnectOptions) -> bool {
    (one.get_host(), one.get_port()) == (other.get_host(), other.get_port())
}

async fn writable(
    server: PgConnectOptions,
) -> (PgConnectOptions, Result<PgConnection, sqlx::Error>) {
    let attempt = async {
        let mut connection = server.connect().await?;
        if is_sound(&mut connection).await? {
            return Ok(connection);
        }
        // The connection is not used, so an error on closing it does not matter.
        let _ = connection.close().await;
        Err(io::Error::other("a standby").into())
    };
    let attempt = timeout(TIMEOUT, attempt)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut));
    (server, attempt)
}

/// A server's description of itself and of this connection.
#[derive(Debug, Clone)]
pub struct Server {
    pub version: String,
    pub encrypted: bool,
    pub now: OffsetDateTime,
}

pub async fn describe(connection: &mut PgConnection) -> Result<Server, Error> {
    let server = sqlx::query_as!(
        Server,
        r#"SELECT current_setting('server_version') AS "version!", clock_timestamp() AS "now!",
                  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "encrypted!""#,
    )
    .fetch_one(connection)
    .await?;
    Ok(server)
}
