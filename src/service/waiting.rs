//! What the service does while its database cannot be reached at the start: it answers that it lives and is not
//! ready, and tries again. Afterwards, the pool does so by itself.

use std::io::ErrorKind;
use std::pin::pin;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::time::{sleep, timeout};

use super::{DATABASE, Error};
use crate::config::Config;
use crate::web::database::{self, Settings};
use crate::web::waiting;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest attempt.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two lines that say so.
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// Returns once the database can be reached, and whether it is wanted by then: the process may have been told
/// to stop.
///
/// # Errors
/// The database is there and does not want us, or the port is taken.
pub async fn for_database(config: &Config) -> Result<bool, Error> {
    let options = Settings::read(&config.figment.focus(DATABASE))?.connect_options();
    let options = options.map_err(database::Error::from)?;
    match reach(&options).await {
        Ok(()) => return Ok(true),
        Err(error) if !may_pass(&error) => return Err(Error::Database(error)),
        Err(error) => tracing::warn!(cause = %error, "the database cannot be reached; waiting for it"),
    }
    let room = waiting::rocket(config.figment.clone()).ignite().await.map_err(Box::new)?;
    let shutdown = room.shutdown();
    let mut room = pin!(room.launch());
    tokio::select! {
        left = &mut room => {
            left.map_err(Box::new)?;
            Ok(false)
        }
        reached = keep_trying(&options) => {
            shutdown.notify();
            room.await.map_err(Box::new)?;
            reached.map(|()| true).map_err(Error::Database)
        }
    }
}

async fn keep_trying(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let mut said = Instant::now();
    loop {
        sleep(PAUSE).await;
        match reach(options).await {
            Err(error) if may_pass(&error) => {
                if said.elapsed() >= SAY_AGAIN {
                    said = Instant::now();
                    tracing::warn!(cause = %error, "the database still cannot be reached");
                }
            }
            reached => return reached,
        }
    }
}

async fn reach(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    match timeout(PATIENCE, options.connect()).await {
        Ok(connection) => connection?.close().await,
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Whether it may help to wait. A wrong password, for one, stays wrong.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        // What TLS does not like, such as a certificate of an authority that is not known.
        sqlx::Error::Io(error) => error.kind() != ErrorKind::InvalidData,
        sqlx::Error::PoolTimedOut => true,
        // PostgreSQL, appendix A: it starts or stops, has too many connections, or lost this one.
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| ["57P", "53", "08"].iter().any(|class| code.starts_with(class)))
        }
        _ => false,
    }
}
