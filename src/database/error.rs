//! Database errors, classified by what the caller can do about them.

use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::database::health::is_login;

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
    pub(super) fn is_conflict(&self) -> bool {
        let Self::Raced(Some(error)) = self else {
            return false;
        };
        let code = error.as_database_error().and_then(DatabaseError::code);
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }

    /// Returns the driver's error, if there is one.
    pub(super) const fn cause(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Raced(error) => error.as_ref(),
            Self::Disconnected(error) | Self::Unavailable(error) | Self::Broken(error) => {
                Some(error)
            }
        }
    }

    /// Returns `true` if PostgreSQL gave the statement up because it took too long
    /// (`query_canceled`).
    pub fn is_timeout(&self) -> bool {
        let Self::Unavailable(error) = self else {
            return false;
        };
        let code = error.as_database_error().and_then(DatabaseError::code);
        code.as_deref() == Some("57014")
    }

    pub(super) const fn late() -> Self {
        Self::Unavailable(sqlx::Error::PoolTimedOut)
    }

    /// Returns the error for a statement to which no response came within `limit`.
    pub(super) fn silent(limit: Duration) -> Self {
        let problem = format!("no response in {} seconds", limit.as_secs());
        Self::Disconnected(sqlx::Error::Protocol(problem))
    }

    pub(crate) fn unexpected(outcome: &str) -> Self {
        Self::Broken(sqlx::Error::Protocol(format!("unknown outcome {outcome}")))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(DatabaseError::code);
        let constraint = error
            .as_database_error()
            .and_then(DatabaseError::constraint);
        match (&error, code.as_deref()) {
            (sqlx::Error::Database(_), _)
                if constraint.is_some_and(|name| RACES.contains(&name)) =>
            {
                Self::Raced(Some(error))
            }
            // PostgreSQL, appendix A: serialization_failure, deadlock_detected.
            (_, Some("40001" | "40P01")) => Self::Raced(Some(error)),
            (_, Some("0A000")) if is_stale_plan(&error) => Self::Raced(Some(error)),
            // A row for `events_default` whose range has become another partition's. Unlike a
            // table's constraint, the constraint of a partition has no name.
            (_, Some("23514")) if constraint.is_none() => Self::Raced(Some(error)),
            _ if is_broken(&error) => Self::Disconnected(error),
            // read_only_sql_transaction, lock_not_available, query_canceled (our own timeouts), and
            // the class of exhausted resources.
            (_, Some(code))
                if ["25006", "55P03", "57014"].contains(&code)
                    || code.starts_with("53")
                    || is_login(code) =>
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

/// Returns `true` if the connection is of no more use: `admin_shutdown`, `crash_shutdown`,
/// `cannot_connect_now`, the class of lost connections (PostgreSQL, appendix A), or an error of the
/// network.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("57P") || code.starts_with("08")),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        _ => false,
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
