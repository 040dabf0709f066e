//! The schema, embedded in the binary and brought up to date at the start.

use sqlx::PgConnection;
use sqlx::migrate::{MigrateError, Migrator};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Applies what is missing. Instances that start together take turns (an advisory lock held for
/// the length of the session), so each migration runs once.
///
/// # Errors
/// The database holds a schema that this program does not know, or a migration fails.
pub async fn apply(connection: &mut PgConnection) -> Result<(), MigrateError> {
    MIGRATIONS.run(connection).await
}
