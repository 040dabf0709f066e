//! The database server itself, as an operator wants to know it.

use sqlx::PgConnection;
use time::OffsetDateTime;

use super::Error;

/// What a server says of itself and of the connection to it.
#[derive(Debug, Clone)]
pub struct Server {
    /// PostgreSQL's version.
    pub version: String,
    /// Whether this connection is encrypted.
    pub encrypted: bool,
    /// Its time.
    pub now: OffsetDateTime,
}

/// Asks the server.
///
/// # Errors
/// See [`Error`].
pub async fn describe(connection: &mut PgConnection) -> Result<Server, Error> {
    let server = sqlx::query_as!(
        Server,
        r#"SELECT current_setting('server_version') AS "version!", clock_timestamp() AS "now!",
                  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "encrypted!""#,
    )
    .fetch_one(connection)
    .await?;
    Ok(server)
}
