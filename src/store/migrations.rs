//! The migrations of the schema, embedded in the binary and applied at the start.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Connection, PgConnection, PgPool, PgTransaction};

use super::{Error, doubt};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Key of the advisory lock for schema changes ("vestibul" in ASCII).
const TURN: i64 = 0x7665_7374_6962_756c;
/// Pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until no other instance changes the schema, and keeps the lock for as long as the transaction is open. A
/// session-level lock would be lost in a pooler that lends connections for one transaction at a time.
///
/// It polls instead of waiting in the database: a waiting statement holds a snapshot, for which a concurrent creation
/// of an index would wait in turn.
///
/// # Errors
/// See [`Error`].
pub async fn take_turn(connection: &mut PgConnection) -> Result<PgTransaction<'_>, Error> {
    let mut turn = connection.begin().await?;
    // This connection idles while the other one works, however long that takes.
    sqlx::query_scalar!("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
        .fetch_one(&mut *turn)
        .await?;
    let mut waits = false;
    loop {
        let taken = sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock($1) AS "taken!""#, TURN)
            .fetch_one(&mut *turn)
            .await?;
        if taken {
            return Ok(turn);
        }
        if !waits {
            tracing::info!("another instance is migrating the schema; waiting for it");
        }
        waits = true;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Applies the missing migrations, each in its own transaction. See [`take_turn`].
///
/// # Errors
/// The database has migrations that this program does not know, or a migration fails.
pub async fn apply(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let mut migrator = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
    migrator.set_locking(false);
    migrator.run(connection).await
}

/// The state of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The server accepts writes: it is neither a standby nor a demoted primary.
    pub writable: bool,
    /// Every known migration is applied. There may be more: during a rolling update, older instances meet the newer
    /// schema, which only grows.
    pub migrated: bool,
}

/// Returns the state of the database.
///
/// # Errors
/// The database does not answer, or has no schema.
pub async fn standing(pool: &PgPool) -> Result<Standing, Error> {
    let latest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    // No macro: the migrator's table is not in the schema that queries are checked against.
    let (writable, migrated): (bool, bool) = sqlx::query_as(
        "SELECT current_setting('transaction_read_only') = 'off',
                EXISTS (SELECT FROM _sqlx_migrations WHERE version = $1 AND success)",
    )
    .bind(latest)
    .fetch_one(pool)
    .await?;
    if !writable {
        doubt::begin();
    }
    Ok(Standing { writable, migrated })
}

/// Differences between the database's migrations and those of this program, by version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Number of known migrations.
    pub known: usize,
    /// Known migrations that are not applied, in order.
    pub missing: Vec<i64>,
    /// Applied migrations that only a newer program knows.
    pub unknown: Vec<i64>,
    /// Applied migrations with another text than the known one, or that did not complete.
    pub altered: Vec<i64>,
}

/// Compares the applied migrations with the known ones. Changes nothing.
///
/// # Errors
/// See [`Error`].
pub async fn difference(connection: &mut PgConnection) -> Result<Difference, Error> {
    // No macro, for the reason above.
    let applied: Vec<(i64, Vec<u8>, bool)> =
        match sqlx::query_as("SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version")
            .fetch_all(connection)
            .await
        {
            Err(error) if is_undefined_table(&error) => Vec::new(),
            rows => rows?,
        };
    let known: BTreeMap<_, _> =
        MIGRATIONS.iter().map(|migration| (migration.version, &migration.checksum)).collect();
    let missing = known.keys().copied().filter(|known| !applied.iter().any(|(version, ..)| version == known));
    let mut difference =
        Difference { known: known.len(), missing: missing.collect(), ..Difference::default() };
    for (version, checksum, success) in applied {
        match known.get(&version) {
            None => difference.unknown.push(version),
            Some(known) if !success || ***known != *checksum => difference.altered.push(version),
            Some(_) => {}
        }
    }
    Ok(difference)
}

/// Returns `true` for `undefined_table` (PostgreSQL, appendix A).
fn is_undefined_table(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("42P01"))
}
