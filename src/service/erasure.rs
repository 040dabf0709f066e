//! Erasure of deleted users from events: at once for a limited time, and the rest by the pruner. The progress is stored
//! in the database.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use crate::store::users::Traces;
use crate::store::{Error, erasure as store, in_time, retrying};

/// Time that a request to delete a user waits for the erasure.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Erases these traces for a limited time. The deletion is already committed, so an error is only logged.
pub(crate) async fn begin(pool: &PgPool, traces: &Traces) {
    if let Err(error) = while_patient(pool, traces).await {
        tracing::warn!(%error, "erasing the data of deleted users failed and will be retried");
    }
}

async fn while_patient(pool: &PgPool, traces: &Traces) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT && retrying!(store::users(pool, Some(&traces.users)))?.is_some() {}
    if !traces.addresses.is_empty() {
        let addresses = Some(traces.addresses.as_slice());
        while begun.elapsed() < TIMEOUT && retrying!(store::addresses(pool, addresses))?.is_some() {}
    }
    Ok(())
}

/// Erases all pending users and e-mail addresses, and returns the number of events.
/// After an error, earlier batches stay erased.
pub(super) async fn finish(pool: &PgPool) -> Result<usize, Error> {
    let mut forgotten = 0;
    while let Some(batch) = in_time(store::users(pool, None)).await? {
        forgotten += batch;
    }
    while let Some(batch) = in_time(store::addresses(pool, None)).await? {
        forgotten += batch;
    }
    Ok(forgotten)
}
