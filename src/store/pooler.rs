//! What may stand between the service and PostgreSQL: a pooler that lends a server's connection for
//! one transaction at a time. Statements are prepared under names that each connection counts up from
//! one, so a pooler must keep those of its clients apart. One that does not would, sooner or later, run
//! another statement than the one that was asked for.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use super::Error;

/// How often it is tried. A pooler that is busy may hand out the right connection by chance.
const ROUNDS: u32 = 4;
/// Longest wait for a connection that the pooler has lent to someone else.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a statement that was prepared on the first connection can be run there while the second one
/// is in a transaction, for which a pooler may have lent it the first one's server.
///
/// # Errors
/// See [`Error`].
pub async fn keeps_statements(first: &mut PgConnection, second: &mut PgConnection) -> Result<bool, Error> {
    for _ in 0..ROUNDS {
        if is_lost(run(first).await)? {
            return Ok(false);
        }
        let transaction = second.begin().await?;
        // Waiting means that the pooler has but one connection. Then there is nothing to confuse yet.
        let again = timeout(PATIENCE, run(first)).await;
        transaction.rollback().await?;
        if let Ok(again) = again
            && is_lost(again)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the time limits hold that the service asks for when it connects; poolers may drop them.
///
/// # Errors
/// See [`Error`].
pub async fn keeps_time_limits(connection: &mut PgConnection) -> Result<bool, Error> {
    let limited = sqlx::query_scalar!(r#"SELECT current_setting('lock_timeout') <> '0' AS "limited!""#)
        .fetch_one(connection)
        .await?;
    Ok(limited)
}

async fn run(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT true AS "run!""#).fetch_one(connection).await.map(drop)
}

/// PostgreSQL, appendix A: `invalid_sql_statement_name` and `duplicate_prepared_statement`.
fn is_lost(run: Result<(), sqlx::Error>) -> Result<bool, sqlx::Error> {
    match run {
        Ok(()) => Ok(false),
        Err(sqlx::Error::Database(error)) if matches!(error.code().as_deref(), Some("26000" | "42P05")) => {
            Ok(true)
        }
        Err(error) => Err(error),
    }
}
