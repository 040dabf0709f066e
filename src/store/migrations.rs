//! The schema, embedded in the binary and brought up to date at the start.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Connection, PgConnection, PgPool, PgTransaction};

use super::{Error, doubt};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// The advisory lock of whoever changes the schema. The number means nothing.
const TURN: i64 = 0x7665_7374_6962_756c;
/// How long to let be when it is somebody else's turn.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until nobody else changes the schema, and lets nobody else do it for as long as the
/// transaction is open. A lock for the length of the connection would be lost in a pooler that lends
/// connections for one transaction at a time.
///
/// It tries instead of waiting in the database: who waits there holds a snapshot, which an index that
/// is created concurrently would wait for in turn.
///
/// # Errors
/// See [`Error`].
pub async fn take_turn(connection: &mut PgConnection) -> Result<PgTransaction<'_>, Error> {
    let mut turn = connection.begin().await?;
    // It rests while the other connection works, however long that takes.
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
            tracing::info!("another instance brings the schema up to date; waiting for it");
        }
        waits = true;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Applies what is missing, each migration in a transaction of its own. See [`take_turn`].
///
/// # Errors
/// The database holds a schema that this program does not know, or a migration fails.
pub async fn apply(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let mut migrator = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
    migrator.set_locking(false);
    migrator.run(connection).await
}

/// What the service can do with its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// It takes writes: it is no standby, nor a primary that is one no more.
    pub writable: bool,
    /// Every migration that this program knows is applied. There may be more: while instances are replaced one by
    /// one, the older ones meet the schema of the newer, which only grows.
    pub migrated: bool,
}

/// Asks the database how it stands.
///
/// # Errors
/// The database does not answer, or has no schema at all.
pub async fn standing(pool: &PgPool) -> Result<Standing, Error> {
    let latest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    // No macro: the table is the migrator's and not in the schema that queries are checked against.
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

/// How a database's schema differs from the one that this program brings about, as versions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// How many migrations this program knows.
    pub known: usize,
    /// Known and not applied, the first one first.
    pub missing: Vec<i64>,
    /// Applied and not known: those of a newer program.
    pub unknown: Vec<i64>,
    /// Applied with another text than the known one, or not to the end.
    pub altered: Vec<i64>,
}

/// Compares the schema, and changes nothing.
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

/// PostgreSQL, appendix A: `undefined_table`.
fn is_undefined_table(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("42P01"))
}
