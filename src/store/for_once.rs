//! For statements that are planned anew for their values each time, and so are not kept prepared.

use sqlx::{PgPool, PgTransaction};
use tracing::Instrument;

use super::Error;
use super::deadline::in_time;

/// A transaction for one statement with `.persistent(false)`. The statement is prepared without a name
/// and run in a second step; between the two, a pooler that lends connections for one transaction at a
/// time might lend this one to somebody whose nameless statement would then be run instead.
///
/// Nobody who gives up cancels the `BEGIN`: its connection would go back to the pool within a transaction that the
/// driver does not know of, and what others write there would be lost (launchbadge/sqlx#4393).
///
/// # Errors
/// See [`Error`].
pub(super) async fn for_once(pool: &PgPool) -> Result<PgTransaction<'static>, Error> {
    let pool = pool.clone();
    let begun = async move { in_time(async { Ok(pool.begin().await?) }).await };
    // Where nobody takes the transaction any more, it is rolled back. A task fails only by a panic.
    tokio::spawn(begun.in_current_span()).await.unwrap_or_else(|_| Err(Error::late()))
}
