//! What the service does while its database cannot be reached at the start: it answers that it lives and is not
//! ready, and tries again. Afterwards, the pool does so by itself.

use std::future::pending;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rocket::{Build, Orbit, Rocket};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::drain::Stop;
use super::{Error, Start, connect_options};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest attempt.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two lines that say so.
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// Tries to reach the database once. Answers whether it is there, and says in the log why not.
///
/// # Errors
/// The database is there and does not want us.
pub async fn database_is_there(start: &Start) -> Result<bool, Error> {
    match reach(&connect_options(&start.figment)?).await {
        Ok(()) => Ok(true),
        Err(error) if !may_pass(&error) => Err(Error::Database(error)),
        Err(error) => {
            tracing::warn!(cause = %error, "the database cannot be reached; waiting for it");
            Ok(false)
        }
    }
}

/// Serves as [`launch`](super::launch) does, and finishes a start that is not finished yet once the database can be
/// reached.
///
/// # Errors
/// The server cannot start, or the start cannot be finished.
pub async fn launch(
    rocket: Rocket<Build>,
    start: Option<Start>,
    stop: Stop,
    lifted_off: impl FnOnce(&Rocket<Orbit>) + Send + Sync + 'static,
) -> Result<(), Error> {
    let (runs, running) = oneshot::channel();
    let mut served = Box::pin(super::launch(rocket, stop, |rocket| {
        // It is received for as long as this function runs.
        let _ = runs.send(rocket.shutdown());
        lifted_off(rocket);
    }));
    let finished = async {
        let (Ok(shutdown), Some(start)) = (running.await, start) else { return pending().await };
        let finished = Box::pin(finish(start)).await;
        match &finished {
            Ok(()) => tracing::info!("the database is there; the start is over"),
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
    keep_trying(&connect_options(&start.figment)?).await.map_err(Error::Database)?;
    start.finish().await
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
