//! What a statement's failure means to the caller.

use std::time::{Duration, Instant};

use super::doubt;

/// A statement that did not do its work. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another statement came first; run it again and it sees what the other one did.
    #[error("another request came first")]
    Raced(#[source] Option<sqlx::Error>),
    /// The connection broke; a fresh one may work. Whether the statement took effect is unknown.
    #[error("the connection to the database broke")]
    Disconnected(#[source] sqlx::Error),
    /// The database cannot serve now: no connection in time, a lock held too long, shutting down.
    #[error("the database cannot serve")]
    Unavailable(#[source] sqlx::Error),
    /// A bug, or a database that is not as the migrations left it.
    #[error("the database refused the statement")]
    Broken(#[source] sqlx::Error),
}

/// Constraints that only a concurrent request can make a correct statement violate.
const RACES: [&str; 5] = [
    "users_pkey",
    "users_email_key",
    "identities_provider_subject_key",
    "identities_user_id_fkey",
    "sessions_identity_id_fkey",
];

impl Error {
    /// Whether PostgreSQL gave up a transaction for the sake of another: a sign of load, which many
    /// more runs would only add to.
    fn is_conflict(&self) -> bool {
        let Self::Raced(Some(error)) = self else { return false };
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }

    /// It took longer than anybody waits.
    pub(super) const fn late() -> Self {
        Self::Unavailable(sqlx::Error::PoolTimedOut)
    }

    /// A statement answered what it cannot.
    pub(super) fn unexpected(outcome: &str) -> Self {
        Self::Broken(sqlx::Error::Protocol(format!("unknown outcome {outcome}")))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        let constraint = error.as_database_error().and_then(sqlx::error::DatabaseError::constraint);
        match (&error, code.as_deref()) {
            (sqlx::Error::Database(_), _) if constraint.is_some_and(|name| RACES.contains(&name)) => {
                Self::Raced(Some(error))
            }
            // PostgreSQL, appendix A: serialization_failure, deadlock_detected; and "cached plan must
            // not change result type", which a second run does not meet.
            (sqlx::Error::Database(_), Some("40001" | "40P01" | "0A000")) => Self::Raced(Some(error)),
            // admin_shutdown, crash_shutdown, cannot_connect_now and the class of lost connections.
            (sqlx::Error::Database(_), Some(code)) if code.starts_with("57P") || code.starts_with("08") => {
                Self::Disconnected(error)
            }
            (sqlx::Error::Io(_) | sqlx::Error::Protocol(_), _) => Self::Disconnected(error),
            // read_only_sql_transaction: a primary that is one no more. The other connections lead there, too.
            (sqlx::Error::Database(_), Some("25006")) => {
                doubt::begin();
                Self::Unavailable(error)
            }
            // lock_not_available, query_canceled (our own time limits), and the class of exhausted resources.
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

/// Decides whether a failed statement is worth another run.
#[derive(Debug)]
pub struct Retries {
    failures: u32,
    since: Instant,
}

impl Default for Retries {
    fn default() -> Self {
        Self { failures: 0, since: Instant::now() }
    }
}

impl Retries {
    /// How often a statement is run before the caller is told to come back later.
    const ATTEMPTS: u32 = 8;
    /// The same where the database itself is at odds.
    const ATTEMPTS_IN_CONFLICT: u32 = 4;
    /// For how long one looks for a connection that does not break: a pooler without a server to lend lets each
    /// attempt wait.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// Waits a little when another run can help.
    ///
    /// # Errors
    /// The error itself, when it cannot.
    pub async fn after(&mut self, error: Error) -> Result<(), Error> {
        self.failures += 1;
        let transient = match error {
            Error::Raced(_) => true,
            Error::Disconnected(_) => self.since.elapsed() < Self::PATIENCE,
            Error::Unavailable(_) | Error::Broken(_) => false,
        };
        let attempts = if error.is_conflict() { Self::ATTEMPTS_IN_CONFLICT } else { Self::ATTEMPTS };
        if !transient || self.failures >= attempts {
            return Err(error);
        }
        // The clock's low digits are jitter enough to keep the losers of a race apart.
        let jitter = u64::from(crate::clock::subsecond_nanos() % 1_000);
        tokio::time::sleep(Duration::from_micros(jitter * u64::from(self.failures.pow(2)))).await;
        Ok(())
    }
}

/// Runs a statement, and again for as long as [`Retries`] sees sense in it. A macro, since a closure
/// that borrows what the statement needs would make the future of a handler unfit to be sent.
macro_rules! retrying {
    ($statement:expr) => {{
        let mut retries = $crate::store::error::Retries::default();
        loop {
            match $statement.await {
                Err(error) => retries.after(error).await?,
                done => break done,
            }
        }
    }};
}
pub(crate) use retrying;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_broken_connection_is_replaced_at_once_or_not_at_all() {
        let broke = || Error::Disconnected(sqlx::Error::Protocol("query_wait_timeout".into()));
        let mut quick = Retries::default();
        assert!(quick.after(broke()).await.is_ok());
        let long_ago = Instant::now().checked_sub(Retries::PATIENCE).unwrap();
        let mut slow = Retries { failures: 0, since: long_ago };
        assert!(slow.after(Error::Raced(None)).await.is_ok(), "a race is nobody's fault");
        assert!(slow.after(broke()).await.is_err());
    }
}
