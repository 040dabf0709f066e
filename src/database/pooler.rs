//! Checks of a pooler between the service and PostgreSQL that lends a server connection for one
//! transaction at a time. Each connection names its prepared statements by numbers from one. So a
//! pooler must keep its clients' statements apart, or it would sooner or later run the wrong
//! statement.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use crate::database::error::Error;

/// Number of tries. A busy pooler may hand out the right connection by chance.
const ROUNDS: u32 = 4;
/// Timeout for a connection that the pooler has lent to another client.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns `true` if a statement that was prepared on the first connection still runs there while
/// the second connection is in a transaction, for which a pooler may have lent it the first one's
/// server.
pub async fn keeps_statements(
    first: &mut PgConnection,
    second: &mut PgConnection,
) -> Result<bool, Error> {
    for _ in 0..ROUNDS {
        if is_lost(run(first).await)? {
            return Ok(false);
        }
        let transaction = second.begin().await?;
        // A timeout means that the pooler has only one server connection. Then it cannot confuse
        // anything yet.
        let again = timeout(TIMEOUT, run(first)).await;
        transaction.rollback().await?;
        if let Ok(again) = again
            && is_lost(again)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns `true` if the timeouts that the service sets on connecting are in force; poolers may
/// drop them.
pub async fn keeps_time_limits(connection: &mut PgConnection) -> Result<bool, Error> {
    let limited =
        sqlx::query_scalar!(r#"SELECT current_setting('lock_timeout') <> '0' AS "limited!""#)
            .fetch_one(connection)
            .await?;
    Ok(limited)
}

async fn run(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT true AS "run!""#)
        .fetch_one(connection)
        .await
        .map(drop)
}

/// Returns `true` for `invalid_sql_statement_name` and `duplicate_prepared_statement` (PostgreSQL,
/// appendix A).
fn is_lost(run: Result<(), sqlx::Error>) -> Result<bool, sqlx::Error> {
    match run {
        Ok(()) => Ok(false),
        Err(sqlx::Error::Database(error))
            if matches!(error.code().as_deref(), Some("26000" | "42P05")) =>
        {
            Ok(true)
        }
        Err(error) => Err(error),
    }
}
