//! Checks suspect connections before reuse, and closes a connection that fails. Keeps in mind what
//! statements found out about the server.
//!
//! - If a connection broke, the idle ones most often broke with it. Each is checked once, before
//!   its next use.
//! - If a server no longer accepts writes, each connection is checked before its use for some
//!   seconds, since the connections that were in use lead to that server, too.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::Row;
use sqlx::error::DatabaseError;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use crate::clock;
use crate::database::error::{is_broken, reason};

/// The time limit for a request, and for a statement that no request waits for. It is longer than
/// PostgreSQL's statement timeout and shorter than a proxy's timeout. PostgreSQL does not enforce
/// its timeouts when its machine is gone: connections to it then look alive for a quarter of an
/// hour.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Timeout of the check. It is a part of the time in which the pool has to find a connection.
const TIMEOUT: Duration = Duration::from_millis(500);
/// The idle time after which a connection is checked in any case.
const REST: Duration = Duration::from_secs(1);
/// PostgreSQL, "Date/Time Functions": the two times are equal in the first command of a
/// transaction, so they differ if a transaction was already open. A standby and a demoted primary
/// are read-only.
const SOUND: &str = "SELECT current_setting('transaction_read_only') = 'off' AND now() = statement_timestamp() AS sound";
/// Time between two attempts to write to a full disk, in seconds.
const WRITE_EVERY: i64 = 5;
/// Time between two lines in the log about refused logins, in seconds.
const SAY_EVERY: i64 = 30;

#[derive(Debug)]
pub struct Health {
    /// The zero of the next two times.
    begin: Instant,
    /// Milliseconds from `begin` to the latest broken connection; zero before the first.
    broken: AtomicU64,
    /// Milliseconds from `begin` to the latest refused write; zero before the first.
    demoted: AtomicU64,
    checks: AtomicU64,
    /// Time of the next attempt to write, in seconds since the epoch, or `i64::MAX` if no write has
    /// found the disk full.
    next_write: AtomicI64,
    /// Time of the latest line about a refused login, in seconds since the epoch.
    login_refused: AtomicI64,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            begin: Instant::now(),
            broken: AtomicU64::default(),
            demoted: AtomicU64::default(),
            checks: AtomicU64::default(),
            next_write: AtomicI64::new(i64::MAX),
            login_refused: AtomicI64::new(i64::MIN),
        }
    }
}

impl Health {
    /// Draws the conclusions from an error of the driver.
    pub(super) fn note(&self, error: &sqlx::Error) {
        let code = error.as_database_error().and_then(DatabaseError::code);
        match code.as_deref() {
            _ if is_broken(error) => self.set(&self.broken),
            // read_only_sql_transaction: the server is no longer the primary, and the other
            // connections lead to it, too.
            Some("25006") => self.note_demotion(),
            // disk_full.
            Some("53100") => {
                let next = clock::now().saturating_add(WRITE_EVERY);
                self.next_write.store(next, Ordering::Relaxed);
            }
            Some(code) if is_login(code) => self.say_login(&reason(error)),
            _ => {}
        }
    }

    /// Notes that a server no longer accepts writes.
    pub(super) fn note_demotion(&self) {
        self.set(&self.broken);
        self.set(&self.demoted);
    }

    /// Returns the number of checks of connections that rested, or rested while another one broke.
    pub(super) fn checks(&self) -> u64 {
        self.checks.load(Ordering::Relaxed)
    }

    /// Returns the state of the disk as statements found it. [`Disk::Due`] comes once in five
    /// seconds.
    pub(super) fn disk(&self) -> Disk {
        let now = clock::now();
        let due = |next: i64| (next <= now).then_some(now.saturating_add(WRITE_EVERY));
        match self
            .next_write
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, due)
        {
            Ok(_) => Disk::Due,
            Err(i64::MAX) => Disk::Free,
            Err(_) => Disk::Full,
        }
    }

    /// Notes that a write succeeded on a disk that was full.
    pub(super) fn note_write(&self) {
        self.next_write.store(i64::MAX, Ordering::Relaxed);
    }

    fn set(&self, when: &AtomicU64) {
        // Rounds up, so that the rest of the millisecond counts as before.
        let now = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        when.store(now.saturating_add(1), Ordering::Relaxed);
    }

    /// Returns the time since the noted moment; `None` before the first note.
    fn since(&self, when: &AtomicU64) -> Option<Duration> {
        let at = when.load(Ordering::Relaxed);
        (at > 0).then(|| {
            self.begin
                .elapsed()
                .saturating_sub(Duration::from_millis(at))
        })
    }

    /// Returns `true` if a connection that was idle for `rested` may be used. Checks it first if it
    /// is suspect.
    pub(super) async fn is_usable(&self, connection: &mut PgConnection, rested: Duration) -> bool {
        if !self.is_due(rested) {
            return true;
        }
        self.checks.fetch_add(1, Ordering::Relaxed);
        is_sound(connection).await.unwrap_or(false)
    }

    /// Returns `true` if a connection that was idle for `rested` has to be checked before its use.
    fn is_due(&self, rested: Duration) -> bool {
        rested >= REST
            || self
                .since(&self.broken)
                .is_some_and(|since| rested >= since)
            || self.since(&self.demoted).is_some_and(|since| since < LIMIT)
    }

    /// Logs the refusal, at most once in [`SAY_EVERY`] seconds.
    fn say_login(&self, cause: &str) {
        let now = clock::now();
        let due = |said: i64| (now.saturating_sub(said) >= SAY_EVERY).then_some(now);
        if self
            .login_refused
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, due)
            .is_ok()
        {
            tracing::error!(
                cause,
                "the database refuses the service's login; requests get 503 until it accepts one. Correct the role or its \
                 password in PostgreSQL, or DATABASE_URL, and restart after a change of DATABASE_URL"
            );
        }
    }
}

/// The disk of the database's server.
pub(super) enum Disk {
    Free,
    Full,
    /// It was full, and the next attempt to write is due.
    Due,
}

/// Returns `true` for `invalid_authorization_specification`, `invalid_password`,
/// `invalid_catalog_name`, and `object_not_in_prerequisite_state`, the code for a database with
/// `ALLOW_CONNECTIONS false` (PostgreSQL, appendix A). The password, the role or the database was
/// changed while the service runs.
pub(super) fn is_login(code: &str) -> bool {
    matches!(code, "28000" | "28P01" | "3D000" | "55000")
}

/// Returns `true` if a connection may be used: its server answers in time and accepts writes,
/// outside a transaction.
///
/// # Errors
/// Returns the driver's error, or [`sqlx::Error::PoolTimedOut`] after half a second.
pub async fn is_sound(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
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
    fn a_demotion_makes_each_connection_suspect() {
        let health = Health::default();
        assert!(!health.is_due(Duration::ZERO));
        health.note_demotion();
        assert!(health.is_due(Duration::ZERO));
    }
}
