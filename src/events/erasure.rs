//! Erasure of deleted users from events: at once for a limited time, and the rest by the pruner.
//! The progress is stored in the database.

use std::time::{Duration, Instant};

use crate::database::{Database, Error};

/// Time that a request to delete a user waits for the erasure.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Erases these traces for a limited time. The deletion is already committed, so an error is only
/// logged.
pub(crate) async fn begin(database: &Database, traces: &[String]) {
    let begun = Instant::now();
    let while_patient = async {
        while begun.elapsed() < TIMEOUT
            && database
                .run(|_| erase(database, Some(traces)))
                .await?
                .is_some()
        {}
        Ok::<_, Error>(())
    };
    if let Err(error) = while_patient.await {
        tracing::warn!(%error, "erasing the data of deleted users failed and will be retried");
    }
}

/// Erases all pending traces, and returns the number of events. After an error, earlier batches
/// stay erased.
pub(crate) async fn finish(database: &Database) -> Result<usize, Error> {
    let mut erased = 0;
    while let Some(batch) = database.run(|_| erase(database, None)).await? {
        erased += batch;
    }
    Ok(erased)
}

/// Erases one trace, of `only` or of all pending ones, from some events; see `erase.sql`. Returns
/// the number of events, or `None` if no trace is left or other instances work on them.
pub async fn erase(database: &Database, only: Option<&[String]>) -> Result<Option<usize>, Error> {
    let erased = sqlx::query_file_scalar!("src/events/erase.sql", only)
        .fetch_optional(database)
        .await?;
    Ok(erased.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}
