//! Connections in doubt: work on them was cancelled, one of them broke, or their server no longer accepts writes. From then
//! on all connections are checked for a minute, and none that fails is used again.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use crate::clock;

/// Timeout of the check. It is a part of the time in which the pool has to find a connection.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Time during which every connection is checked, in seconds.
const LASTS: i64 = 60;
/// PostgreSQL, "Date/Time Functions": the two times are equal in the first command of a transaction, so they differ if
/// a transaction was already open. A standby and a demoted primary are read-only.
const SOUND: &str =
    "SELECT current_setting('transaction_read_only') = 'off' AND now() = statement_timestamp() AS sound";

/// Time of the latest reason for doubt, in seconds since the epoch.
static SINCE: AtomicI64 = AtomicI64::new(i64::MIN);

/// Starts a minute in which each connection is checked before its use and before its return to the pool.
pub fn begin() {
    SINCE.store(clock::now(), Ordering::Relaxed);
}

/// Returns `true` while connections have to be checked.
#[must_use]
pub fn prevails() -> bool {
    clock::now().saturating_sub(SINCE.load(Ordering::Relaxed)) < LASTS
}

/// Returns `true` if a connection may be used: its server answers in time and accepts writes, outside a transaction.
///
/// The check is one round trip, and first reads the rest of an abandoned answer. The pool has no time limit for that.
///
/// # Errors
/// The server does not answer in time, or the query fails.
pub async fn is_sound(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let asked = sqlx::raw_sql(SOUND).fetch_one(connection);
    timeout(TIMEOUT, asked).await.map_err(|_| sqlx::Error::PoolTimedOut)??.try_get(0)
}
