//! Facts about the database server, for operators.

use sqlx::PgConnection;
use time::OffsetDateTime;

use super::Error;

/// A server's description of itself and of this connection.
#[derive(Debug, Clone)]
pub struct Server {
    pub version: String,
    pub encrypted: bool,
    pub now: OffsetDateTime,
}

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
