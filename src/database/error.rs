//! Database errors, classified by what the caller can do about them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgDatabaseError;

use crate::clock;
use crate::database::{health, login};

/// Time between two attempts to write to a full disk, in seconds.
pub(super) const WRITE_EVERY: i64 = 5;

/// Time of the next attempt to write, in seconds since the epoch, or `i64::MAX` if no write has
/// found the disk full.
pub(super) static NEXT_WRITE: AtomicI64 = AtomicI64::new(i64::MAX);

/// The reason why a statement failed. Nothing was written, except where a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A concurrent statement came first. A retry sees its result.
    #[error("the statement conflicted with concurrent ones{}", .0.as_ref().map(|error| format!(": {}", reason(error))).unwrap_or_default())]
    Raced(Option<sqlx::Error>),
    /// The connection broke. A retry on another one may work. It is unknown if the statement took
    /// effect.
    #[error("the connection to the database was lost: {}", reason(.0))]
    Disconnected(sqlx::Error),
    /// The database is unavailable: no connection in time, a refused login, a lock held for too
    /// long, or a shutdown.
    #[error("the database is unavailable: {}", reason(.0))]
    Unavailable(sqlx::Error),
    /// A bug, or a schema that differs from what the migrations create.
    #[error("the database rejected the statement: {}", reason(.0))]
    Broken(sqlx::Error),
}

/// Describes an error in words. An error of PostgreSQL is its message alone: sqlx adds a line of
/// the server's source code.
pub fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::PoolTimedOut => "no connection was free, or could be made, in time".into(),
        sqlx::Error::Database(error) => error.message().into(),
        _ => error.to_string(),
    }
}

/// Constraints that a correct statement violates only in a race with another request.
const RACES: [&str; 5] = [
    "users_pkey",
    "users_email_key",
    "identities_provider_subject_key",
    "identities_user_id_fkey",
    "sessions_identity_id_fkey",
];

impl Error {
    /// Returns `true` if PostgreSQL aborted the transaction because of another one. This is a sign
    /// of load, and many retries would only add to it.
    fn is_conflict(&self) -> bool {
        let Self::Raced(Some(error)) = self else {
            return false;
        };
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }

    /// Returns the error for a connection that broke. Most often the other connections broke with
    /// it, and a pool can hold more of them than there are attempts.
    fn disconnected(error: sqlx::Error) -> Self {
        health::broken();
        Self::Disconnected(error)
    }

    /// Returns `true` if PostgreSQL gave the statement up because it took too long
    /// (`query_canceled`).
    pub fn is_timeout(&self) -> bool {
        let Self::Unavailable(error) = self else {
            return false;
        };
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        code.as_deref() == Some("57014")
    }

    pub(super) const fn late() -> Self {
        Self::Unavailable(sqlx::Error::PoolTimedOut)
    }

    /// Returns the error for a change that an earlier attempt may have made, whose connection
    /// broke.
    pub(crate) fn perhaps_done() -> Self {
        Self::Disconnected(sqlx::Error::Protocol(
            "the change may have been made before".into(),
        ))
    }

    pub(crate) fn unexpected(outcome: &str) -> Self {
        Self::Broken(sqlx::Error::Protocol(format!("unknown outcome {outcome}")))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        let constraint = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::constraint);
        match (&error, code.as_deref()) {
            (sqlx::Error::Database(_), _)
                if constraint.is_some_and(|name| RACES.contains(&name)) =>
            {
                Self::Raced(Some(error))
            }
            // PostgreSQL, appendix A: serialization_failure, deadlock_detected.
            (sqlx::Error::Database(_), Some("40001" | "40P01")) => Self::Raced(Some(error)),
            (sqlx::Error::Database(_), Some("0A000")) if is_stale_plan(&error) => {
                Self::Raced(Some(error))
            }
            // A row for `events_default` whose range has become another partition's. Unlike a
            // table's constraint, the constraint of a partition has no name.
            (sqlx::Error::Database(_), Some("23514")) if constraint.is_none() => {
                Self::Raced(Some(error))
            }
            // admin_shutdown, crash_shutdown, cannot_connect_now and the class of lost connections.
            (sqlx::Error::Database(_), Some(code))
                if code.starts_with("57P") || code.starts_with("08") =>
            {
                Self::disconnected(error)
            }
            (sqlx::Error::Io(_) | sqlx::Error::Protocol(_), _) => Self::disconnected(error),
            // read_only_sql_transaction: the server is no longer the primary, and the other
            // connections lead to it, too.
            (sqlx::Error::Database(_), Some("25006")) => {
                health::demoted();
                Self::Unavailable(error)
            }
            (sqlx::Error::Database(_), Some(code)) if login::is_refused(code) => {
                login::tell(&reason(&error));
                Self::Unavailable(error)
            }
            // disk_full.
            (sqlx::Error::Database(_), Some("53100")) => {
                NEXT_WRITE.store(clock::now().saturating_add(WRITE_EVERY), Ordering::Relaxed);
                Self::Unavailable(error)
            }
            // lock_not_available, query_canceled (our own timeouts), and the class of exhausted
            // resources.
            (sqlx::Error::Database(_), Some(code))
                if ["55P03", "57014"].contains(&code) || code.starts_with("53") =>
            {
                Self::Unavailable(error)
            }
            (sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Tls(_), _) => {
                Self::Unavailable(error)
            }
            _ => Self::Broken(error),
        }
    }
}

/// Returns `true` for "cached plan must not change result type", which does not recur on a retry.
/// Its code stands for everything that PostgreSQL does not support, and its text is in the server's
/// language, so only the name of PostgreSQL's function identifies it.
fn is_stale_plan(error: &sqlx::Error) -> bool {
    let error = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.and_then(PgDatabaseError::routine) == Some("RevalidateCachedQuery")
}

/// Decides whether to retry a failed statement.
#[derive(Debug)]
pub struct Retries {
    failures: u32,
    since: Instant,
    perhaps_done: bool,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            failures: 0,
            since: Instant::now(),
            perhaps_done: false,
        }
    }
}

impl Retries {
    /// Maximum number of attempts before the caller gets the error.
    const ATTEMPTS: u32 = 8;
    /// Maximum number of attempts after conflicts between transactions.
    const ATTEMPTS_IN_CONFLICT: u32 = 4;
    /// Time during which broken connections are replaced. A pooler without a free server delays
    /// each attempt.
    const TIMEOUT: Duration = Duration::from_secs(2);

    /// Waits briefly if a retry can help. Returns the error itself if a retry cannot help.
    pub async fn after(&mut self, error: Error) -> Result<(), Error> {
        self.failures += 1;
        self.perhaps_done |= matches!(error, Error::Disconnected(_));
        let transient = match error {
            Error::Raced(_) => true,
            Error::Disconnected(_) => self.since.elapsed() < Self::TIMEOUT,
            Error::Unavailable(_) | Error::Broken(_) => false,
        };
        let attempts = if error.is_conflict() {
            Self::ATTEMPTS_IN_CONFLICT
        } else {
            Self::ATTEMPTS
        };
        if !transient || self.failures >= attempts {
            return Err(error);
        }
        // The clock's last digits serve as jitter that keeps the losers of a race apart.
        let jitter = u64::from(crate::clock::subsecond_nanos() % 1_000);
        tokio::time::sleep(Duration::from_micros(
            jitter * u64::from(self.failures.pow(2)),
        ))
        .await;
        Ok(())
    }

    /// Returns `true` if an attempt may have taken effect, since its connection broke.
    pub(crate) const fn perhaps_done(&self) -> bool {
        self.perhaps_done
    }
}

/// Runs a statement, and retries it while [`Retries`] permits. Evaluates to its result, and to
/// `true` if an earlier attempt whose connection broke may have taken effect. The expression is
/// evaluated for each attempt. This is a macro, since a closure that borrows the statement's
/// arguments would make a handler's future not `Send`.
macro_rules! retried {
    ($statement:expr) => {{
        let mut retries = $crate::database::error::Retries::default();
        loop {
            match $statement.await {
                Err(error) => retries.after(error).await?,
                Ok(done) => break (done, retries.perhaps_done()),
            }
        }
    }};
}
pub(crate) use retried;

/// Runs a statement as [`retried`] does, if repeating it gives the same result.
macro_rules! retrying {
    ($statement:expr) => {
        Ok::<_, $crate::database::error::Error>($crate::database::error::retried!($statement).0)
    };
}
pub(crate) use retrying;

/// Runs a statement as [`retried`] does. `$undone` matches the outcomes which say that nothing was
/// done. If an earlier attempt may have done it, the function returns [`Error::Disconnected`]
/// instead.
macro_rules! changing {
    ($statement:expr, $undone:pat) => {
        match $crate::database::error::retried!($statement) {
            ($undone, true) => return Err($crate::database::error::Error::perhaps_done()),
            (done, _) => Ok::<_, $crate::database::error::Error>(done),
        }
    };
}
pub(crate) use changing;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_broken_connection_is_replaced_at_once_or_not_at_all() {
        let broke = || Error::Disconnected(sqlx::Error::Protocol("query_wait_timeout".into()));
        let mut quick = Retries::default();
        assert!(quick.after(broke()).await.is_ok());
        let long_ago = Instant::now().checked_sub(Retries::TIMEOUT).unwrap();
        let mut slow = Retries {
            since: long_ago,
            ..Retries::default()
        };
        assert!(
            slow.after(Error::Raced(None)).await.is_ok(),
            "a race is retried"
        );
        assert!(slow.after(broke()).await.is_err());
    }
}
