//! Transactions for statements that are planned for their values each time, and so are not kept prepared.

use sqlx::{PgPool, PgTransaction};
use tracing::Instrument;

use super::Error;
use super::deadline::in_time;

/// Begins a transaction for one statement with `.persistent(false)`. Such a statement is prepared without a name and
/// executed in a second step. In between, a pooler that lends connections for one transaction at a time could lend this
/// one to a client whose unnamed statement would then be executed instead.
///
/// A cancelled caller does not cancel the `BEGIN`: its connection would return to the pool inside a transaction that
/// the driver does not know of, and the writes of later callers would be lost (launchbadge/sqlx#4393).
///
/// # Errors
/// See [`Error`].
pub(crate) async fn unprepared(pool: &PgPool) -> Result<PgTransaction<'static>, Error> {
    let pool = pool.clone();
    let begun = async move { in_time(async { Ok(pool.begin().await?) }).await };
    // A transaction that the caller does not receive is rolled back. A task fails only if it panics.
    tokio::spawn(begun.in_current_span()).await.unwrap_or_else(|_| Err(Error::late()))
}
