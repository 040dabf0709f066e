//! Forgetting people who were deleted: at once as far as that is quickly done, and the rest by the pruner, which finds
//! in the database how far it has come.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use crate::store::deadline::in_time;
use crate::store::error::retrying;
use crate::store::users::Traces;
use crate::store::{Error, forget};

/// For how long whoever deletes somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(3);

/// Forgets these for a while. The deletion is made already and stays so whatever happens here.
pub(super) async fn begin(pool: &PgPool, traces: &Traces) {
    if let Err(error) = while_patient(pool, traces).await {
        tracing::warn!(%error, "what deleted people leave is not forgotten yet; it is tried again later");
    }
}

async fn while_patient(pool: &PgPool, traces: &Traces) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && retrying!(forget::users(pool, Some(&traces.users)))?.is_some() {}
    if !traces.addresses.is_empty() {
        let addresses = Some(traces.addresses.as_slice());
        while begun.elapsed() < PATIENCE && retrying!(forget::addresses(pool, addresses))?.is_some() {}
    }
    Ok(())
}

/// Forgets everybody who is to be forgotten; answers in how many events.
///
/// # Errors
/// See [`Error`]; what was forgotten before stays so.
pub(super) async fn finish(pool: &PgPool) -> Result<usize, Error> {
    let mut forgotten = 0;
    while let Some(batch) = in_time(forget::users(pool, None)).await? {
        forgotten += batch;
    }
    while let Some(batch) = in_time(forget::addresses(pool, None)).await? {
        forgotten += batch;
    }
    Ok(forgotten)
}
