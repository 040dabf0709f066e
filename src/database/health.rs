//! Checks suspect connections before reuse, and closes a connection that fails.
//!
//! - A connection that was abandoned in the middle of its work is checked when it comes back to the
//!   pool. Other returning connections are not checked.
//! - If a connection broke, the idle ones most often broke with it. Each is checked once, before
//!   its next use.
//! - If a server no longer accepts writes, each connection is checked before its use for some
//!   seconds, since the connections that were in use lead to that server, too.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::Row;
use sqlx::postgres::PgConnection;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Time limit for a request, and for a statement that no request waits for. It is longer than
/// PostgreSQL's statement timeout and shorter than a proxy's timeout.
pub const LIMIT: Duration = Duration::from_secs(20);
/// Timeout of the check. It is a part of the time in which the pool has to find a connection.
const TIMEOUT: Duration = Duration::from_millis(500);
/// The idle time after which a connection is checked in any case.
const REST: Duration = Duration::from_secs(1);
/// PostgreSQL, "Date/Time Functions": the two times are equal in the first command of a
/// transaction, so they differ if a transaction was already open. A standby and a demoted primary
/// are read-only.
const SOUND: &str = "SELECT current_setting('transaction_read_only') = 'off' AND now() = statement_timestamp() AS sound";

/// The zero of the times below.
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Milliseconds from [`BEGIN`] to the latest broken connection, and to the latest refused write;
/// zero before the first.
static BROKEN: AtomicU64 = AtomicU64::new(0);
static DEMOTED: AtomicU64 = AtomicU64::new(0);

static CHECKS: AtomicU64 = AtomicU64::new(0);

/// The driver gives a dropped connection back in a task, on the runtime in whose context it is
/// dropped. Abandoned work is dropped in the context of this runtime, so a connection that comes
/// back on its thread was abandoned.
static ABANDONED: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut runtime = Builder::new_multi_thread();
    runtime
        .worker_threads(1)
        .thread_name("abandoned")
        .on_thread_start(|| HERE.set(true))
        .enable_all();
    runtime
        .build()
        .inspect_err(|error| tracing::error!(%error, "no thread for abandoned connections"))
        .ok()
});

thread_local! {
    /// True on the thread of [`ABANDONED`].
    static HERE: Cell<bool> = const { Cell::new(false) };
}

fn note(when: &AtomicU64) {
    // Rounds up, so that the rest of the millisecond counts as before.
    let now = u64::try_from(BEGIN.elapsed().as_millis()).unwrap_or(u64::MAX);
    when.store(now.saturating_add(1), Ordering::Relaxed);
}

/// Returns the time since the noted moment; `None` before the first note.
fn since(when: &AtomicU64) -> Option<Duration> {
    let at = when.load(Ordering::Relaxed);
    (at > 0).then(|| BEGIN.elapsed().saturating_sub(Duration::from_millis(at)))
}

pub fn broken() {
    note(&BROKEN);
}

/// Notes that a server no longer accepts writes.
pub fn demoted() {
    note(&BROKEN);
    note(&DEMOTED);
}

/// Drops work that no caller waits for, with the connections that it uses.
pub fn abandon(drop: impl FnOnce()) {
    let context = ABANDONED.as_ref().map(Runtime::enter);
    drop();
    std::mem::drop(context);
}

/// Returns `true` if a connection that was idle for so long has to be checked before its use.
pub fn is_due(rested: Duration) -> bool {
    rested >= REST
        || since(&BROKEN).is_some_and(|since| rested >= since)
        || since(&DEMOTED).is_some_and(|since| since < LIMIT)
}

/// Returns `true` if the connection that comes back to the pool in this task was abandoned.
pub fn is_abandoned() -> bool {
    HERE.get()
}

pub fn checks() -> u64 {
    CHECKS.load(Ordering::Relaxed)
}

/// Returns `true` if a connection may be used: its server answers in time and accepts writes,
/// outside a transaction.
///
/// The check is one round trip, and first reads the rest of an abandoned response. The pool has no
/// time limit for that.
pub async fn is_sound(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    CHECKS.fetch_add(1, Ordering::Relaxed);
    let asked = sqlx::raw_sql(SOUND).fetch_one(connection);
    timeout(TIMEOUT, asked)
        .await
        .map_err(|_| sqlx::Error::PoolTimedOut)??
        .try_get(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_abandoned_casts_doubt_on_no_other_connection() {
        abandon(|| {});
        assert!(!is_due(Duration::ZERO));
        demoted();
        assert!(is_due(Duration::ZERO));
    }
}
