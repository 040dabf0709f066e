//! The schema, embedded in the binary and brought up to date at the start.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{PgConnection, PgPool};

use super::Error;

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Applies what is missing. Instances that start together take turns (an advisory lock held for
/// the length of the session), so each migration runs once.
///
/// # Errors
/// The database holds a schema that this program does not know, or a migration fails.
pub async fn apply(connection: &mut PgConnection) -> Result<(), MigrateError> {
    MIGRATIONS.run(connection).await
}

/// Whether every migration that this program knows is applied. There may be more: while instances
/// are replaced one by one, the older ones meet the schema of the newer, which only grows.
///
/// # Errors
/// The database does not answer, or has no schema at all.
pub async fn are_applied(pool: &PgPool) -> Result<bool, Error> {
    let latest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    // No macro: the table is the migrator's and not in the schema that queries are checked against.
    let applied: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM _sqlx_migrations WHERE version = $1 AND success)")
            .bind(latest)
            .fetch_one(pool)
            .await?;
    Ok(applied)
}
