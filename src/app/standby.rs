//! A start without a reachable database: the service reports that it is alive but not ready, and
//! retries. Once it has started, the connection pool reconnects on its own.

use std::future::pending;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rocket::{Build, Orbit, Rocket};
use sqlx::Connection;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::drain::Stop;
use super::{Error, Start, failed};
use crate::database::error::reason;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// The timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The interval between two warnings in the log.
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// Tries to reach the database once. Returns false, with a warning in the log, if it cannot be
/// reached. It is an error that the database can be reached but refuses the connection.
pub async fn database_is_there(start: &Start) -> Result<bool, Error> {
    match reach(start).await {
        Ok(()) => Ok(true),
        Err(error) if !may_pass(&error) => Err(failed(start.database.servers())(error)),
        Err(error) => {
            tracing::warn!(
                cause = reason(&error),
                "the database is unreachable; waiting for it"
            );
            Ok(false)
        }
    }
}

/// Serves as [`launch`](super::launch) does, and completes an incomplete start once the database
/// can be reached.
pub async fn launch(
    rocket: Rocket<Build>,
    start: Option<Start>,
    stop: Stop,
    lifted_off: impl FnOnce(&Rocket<Orbit>) + Send + Sync + 'static,
) -> Result<(), Error> {
    let (runs, running) = oneshot::channel();
    let mut served = Box::pin(super::launch(rocket, stop, |rocket| {
        // The receiver lives as long as this function.
        let _ = runs.send(rocket.shutdown());
        lifted_off(rocket);
    }));
    let finished = async {
        let (Ok(shutdown), Some(start)) = (running.await, start) else {
            return pending().await;
        };
        let finished = Box::pin(finish(start)).await;
        match &finished {
            Ok(()) => tracing::info!("the database is reachable; the start is complete"),
            Err(_) => shutdown.notify(),
        }
        finished
    };
    tokio::select! {
        served = &mut served => served,
        finished = finished => finished.and(served.await),
    }
}

async fn finish(start: Start) -> Result<(), Error> {
    keep_trying(&start)
        .await
        .map_err(failed(start.database.servers()))?;
    start.finish().await
}

async fn keep_trying(start: &Start) -> Result<(), sqlx::Error> {
    let mut said = Instant::now();
    loop {
        sleep(PAUSE).await;
        match reach(start).await {
            Err(error) if may_pass(&error) => {
                if said.elapsed() >= SAY_AGAIN {
                    said = Instant::now();
                    tracing::warn!(cause = reason(&error), "the database is still unreachable");
                }
            }
            reached => return reached,
        }
    }
}

async fn reach(start: &Start) -> Result<(), sqlx::Error> {
    match timeout(TIMEOUT, start.database.reach()).await {
        Ok(connection) => connection?.close().await,
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Returns true if a retry may help. A wrong password, for one, stays wrong.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        // TLS reports its errors this way, such as an unknown certificate authority.
        sqlx::Error::Io(error) => error.kind() != ErrorKind::InvalidData,
        sqlx::Error::PoolTimedOut => true,
        // PostgreSQL, appendix A: it starts or stops, has too many connections, or lost this one.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["57P", "53", "08"]
                .iter()
                .any(|class| code.starts_with(class))
        }),
        _ => false,
    }
}
