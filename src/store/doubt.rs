//! Connections in doubt: work on them was given up, or the server behind them takes no writes any more. None of
//! them is used again.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use crate::clock;

/// Longest wait for a sign of life.
const PATIENCE: Duration = Duration::from_secs(2);
/// For how long every connection is asked, in seconds.
const LASTS: i64 = 60;
/// PostgreSQL, "Date/Time Functions": the two times are the same during the first command of a transaction, and so
/// differ where one was begun before. A standby and a demoted primary are read-only.
const SOUND: &str =
    "SELECT current_setting('transaction_read_only') = 'off' AND now() = statement_timestamp() AS sound";

/// When there was last a reason to doubt.
static SINCE: AtomicI64 = AtomicI64::new(i64::MIN);

/// From now on, and for a minute, each connection shows that it is sound before it is used and before it goes back.
pub fn begin() {
    SINCE.store(clock::now(), Ordering::Relaxed);
}

/// Whether connections have to show that they are sound.
#[must_use]
pub fn prevails() -> bool {
    clock::now().saturating_sub(SINCE.load(Ordering::Relaxed)) < LASTS
}

/// Whether a connection may be used: its server answers in time and takes writes, and no transaction is open.
///
/// It is one round trip, and reads first what is left of an answer that nobody waits for any more. The pool would
/// wait for that as long as it takes.
///
/// # Errors
/// It may not.
pub async fn is_sound(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let asked = sqlx::raw_sql(SOUND).fetch_one(connection);
    timeout(PATIENCE, asked).await.map_err(|_| sqlx::Error::PoolTimedOut)??.try_get(0)
}
