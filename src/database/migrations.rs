//! The migrations of the schema, embedded in the binary and applied at the start.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, Migrator};
use sqlx::{Connection, Executor, PgConnection, PgTransaction};

use crate::database::connections::Database;
use crate::database::error::Error;

static MIGRATIONS: Migrator = sqlx::migrate!();

/// The version of this program.
const OURS: &str = env!("CARGO_PKG_VERSION");

/// Key of the advisory lock for schema changes ("vestibul" in ASCII).
const TURN: i64 = 0x7665_7374_6962_756c;
/// Pause between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two attempts of a migration.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Limits the time that a change of the schema waits for a table, since all statements that need
/// the table queue behind it. It is shorter than PostgreSQL's `deadlock_timeout` (1 s): if a
/// request and the change wait for each other, the change gives up.
pub(crate) const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '200ms'";

/// Waits until no other instance changes the schema, and keeps the lock for as long as the
/// transaction is open. A session-level lock would be lost in a pooler that lends connections for
/// one transaction at a time.
///
/// It polls instead of waiting in the database: a waiting statement holds a snapshot, for which a
/// concurrent creation of an index would wait in turn.
pub async fn take_turn(connection: &mut PgConnection) -> Result<PgTransaction<'_>, Error> {
    let mut turn = connection.begin().await?;
    // This connection idles while the other one works, however long that takes.
    sqlx::query_scalar!("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
        .fetch_one(&mut *turn)
        .await?;
    let mut waits = false;
    loop {
        let taken =
            sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock($1) AS "taken!""#, TURN)
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

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A newer program removed something that this one uses.
    #[error(
        "migration {migration} belongs to a newer release, and the schema serves version {oldest} and newer, but this is \
         {OURS}; start version {oldest} or newer, or restore a backup from before that migration"
    )]
    Outgrown {
        /// The first migration that this program does not know.
        migration: i64,
        /// The oldest version that the schema serves.
        oldest: String,
    },
    /// Migrations are missing, and the role lacks the privileges to apply them.
    #[error(
        "{missing} of {known} migrations are not applied, starting with {first}, and this role may not apply them \
         ({cause}); run `vestibule migrate` of this release as the role that owns the schema"
    )]
    NotPermitted {
        missing: usize,
        known: usize,
        first: i64,
        cause: MigrateError,
    },
    #[error(
        "{0}; check that this release is not older than the schema, and that the role may change it"
    )]
    Failed(#[from] MigrateError),
    #[error(
        "the applied migrations cannot be read: {0}; check that the role may read the tables `_sqlx_migrations` and `oldest_version`"
    )]
    Unread(#[from] Error),
}

/// Applies the missing migrations, each in its own transaction, and returns their versions. See
/// [`take_turn`]. Does nothing if no migration is missing, so that a role without the privilege to
/// create tables can serve.
///
/// Migrations of a newer program stay if the schema still serves this one.
pub async fn apply(connection: &mut PgConnection) -> Result<Vec<i64>, Failure> {
    let difference = difference(connection).await?;
    if let Some((migration, oldest)) = difference.outgrown() {
        return Err(Failure::Outgrown { migration, oldest });
    }
    if let Some(newer) = difference.unknown.last() {
        tracing::warn!(
            newer,
            "a newer release has migrated the schema, which still serves this version"
        );
    }
    let Difference {
        known,
        missing,
        altered,
        ..
    } = difference;
    if missing.is_empty() && altered.is_empty() {
        return Ok(missing);
    }
    let mut migrator = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
    run(connection, &mut migrator)
        .await
        .map_err(|cause| match missing.first() {
            Some(&first) if is_not_permitted(&cause) => Failure::NotPermitted {
                missing: missing.len(),
                known,
                first,
                cause,
            },
            _ => Failure::Failed(cause),
        })?;
    Ok(missing)
}

/// Applies the migrations that the database lacks. A migration that does not get its locks in time
/// gives way to the requests that hold them, and is retried for as long as it takes.
pub async fn run(
    connection: &mut PgConnection,
    migrator: &mut Migrator,
) -> Result<(), MigrateError> {
    migrator.set_locking(false).set_ignore_missing(true);
    for migration in migrator.iter() {
        let mut failures = 0;
        while let Err(error) = run_to(connection, migrator, migration).await {
            if !is_blocked(&error) {
                return Err(error);
            }
            if failures == 0 {
                tracing::warn!(
                    migration = migration.version,
                    "a migration waits for locks that other transactions hold"
                );
            }
            failures += 1;
            tokio::time::sleep(pause(failures)).await;
        }
    }
    Ok(())
}

/// Returns the pause after `failures` attempts that did not get their locks. Requests wait during
/// each attempt.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(failures).min(MAX_PAUSE)
}

async fn run_to(
    connection: &mut PgConnection,
    migrator: &Migrator,
    last: &Migration,
) -> Result<(), MigrateError> {
    if last.no_tx {
        return migrator.run_to(last.version, connection).await;
    }
    let mut transaction = connection.begin().await?;
    transaction.execute(LOCK_TIMEOUT).await?;
    migrator.run_to(last.version, &mut *transaction).await?;
    Ok(transaction.commit().await?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The server accepts writes: it is neither a standby nor a demoted primary.
    pub writable: bool,
    /// Every known migration is applied. There may be more: during a rolling update, older
    /// instances meet the newer schema, which only grows.
    pub migrated: bool,
}

/// Returns the state of the database.
pub async fn standing(database: &Database) -> Result<Standing, Error> {
    let latest = MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or_default();
    // No macro: the migrator's table is not in the schema that queries are checked against.
    let (writable, migrated): (bool, bool) = sqlx::query_as(
        "SELECT current_setting('transaction_read_only') = 'off',
                EXISTS (SELECT FROM _sqlx_migrations WHERE version = $1 AND success)",
    )
    .bind(latest)
    .fetch_one(database)
    .await?;
    if !writable {
        database.health().note_demotion();
    }
    Ok(Standing { writable, migrated })
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    pub known: usize,
    /// Known migrations that are not applied, in order.
    pub missing: Vec<i64>,
    /// Applied migrations that only a newer program knows.
    pub unknown: Vec<i64>,
    /// Applied migrations with another text than the known one, or that did not complete.
    pub altered: Vec<i64>,
    /// The oldest version that the schema serves. It is read only if there are unknown migrations.
    pub oldest: Option<String>,
}

impl Difference {
    /// Returns the first migration of a newer program and the oldest version that the schema
    /// serves, if this program is older.
    pub fn outgrown(&self) -> Option<(i64, String)> {
        let migration = *self.unknown.first()?;
        let oldest = self.oldest.clone().unwrap_or_else(|| "unknown".into());
        let serves = release(&oldest)
            .zip(release(OURS))
            .is_some_and(|(oldest, ours)| oldest <= ours);
        (!serves).then_some((migration, oldest))
    }
}

/// Parses the three numbers of a version. A pre-release counts as the release.
fn release(version: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = version
        .split(['-', '+'])
        .next()?
        .split('.')
        .map(|number| number.parse().ok())
        .collect();
    numbers?.try_into().ok()
}

pub async fn may_create(connection: &mut PgConnection) -> Result<bool, Error> {
    let may = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
    Ok(sqlx::query_scalar(may).fetch_one(connection).await?)
}

/// Returns the names of the tables on which the role lacks a privilege that the service needs.
pub async fn closed_tables(connection: &mut PgConnection) -> Result<Vec<String>, Error> {
    let closed = "SELECT c.relname::text FROM pg_class c
                  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
                      AND (SELECT bool_or(NOT has_table_privilege(c.oid, needed))
                           FROM unnest(CASE c.relname WHEN '_sqlx_migrations' THEN ARRAY['SELECT']
                                       ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] END) AS needed)
                  ORDER BY 1";
    Ok(sqlx::query_scalar(closed).fetch_all(connection).await?)
}

/// Compares the applied migrations with the known ones. Changes nothing.
pub async fn difference(connection: &mut PgConnection) -> Result<Difference, Error> {
    // No macro, for the reason above.
    let applied: Vec<(i64, Vec<u8>, bool)> = match sqlx::query_as(
        "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version",
    )
    .fetch_all(&mut *connection)
    .await
    {
        Err(error) if is_undefined_table(&error) => Vec::new(),
        rows => rows?,
    };
    let known: BTreeMap<_, _> = MIGRATIONS
        .iter()
        .map(|migration| (migration.version, &migration.checksum))
        .collect();
    let missing = known
        .keys()
        .copied()
        .filter(|known| !applied.iter().any(|(version, ..)| version == known));
    let mut difference = Difference {
        known: known.len(),
        missing: missing.collect(),
        ..Difference::default()
    };
    for (version, checksum, success) in applied {
        match known.get(&version) {
            None => difference.unknown.push(version),
            Some(known) if !success || ***known != *checksum => difference.altered.push(version),
            Some(_) => {}
        }
    }
    if !difference.unknown.is_empty() {
        difference.oldest = oldest(connection).await?;
    }
    Ok(difference)
}

/// Returns the oldest version that the schema serves, or `None` if it is not recorded.
async fn oldest(connection: &mut PgConnection) -> Result<Option<String>, Error> {
    match sqlx::query_scalar!("SELECT version FROM oldest_version")
        .fetch_optional(connection)
        .await
    {
        Err(error) if is_undefined_table(&error) => Ok(None),
        version => Ok(version?),
    }
}

/// Returns `true` for `insufficient_privilege` (PostgreSQL, appendix A).
fn is_not_permitted(error: &MigrateError) -> bool {
    code(error).as_deref() == Some("42501")
}

/// Returns `true` for `lock_not_available` and `deadlock_detected` (PostgreSQL, appendix A).
fn is_blocked(error: &MigrateError) -> bool {
    matches!(code(error).as_deref(), Some("55P03" | "40P01"))
}

/// Returns PostgreSQL's code of an error.
fn code(error: &MigrateError) -> Option<Cow<'_, str>> {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return None;
    };
    error.as_database_error()?.code()
}

/// Returns `true` for `undefined_table` (PostgreSQL, appendix A).
fn is_undefined_table(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.code().as_deref() == Some("42P01"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_migration_blocks_requests_under_a_twentieth_of_the_time() {
        assert_eq!(pause(1), PAUSE);
        let wait = Duration::from_millis(200);
        let mut blocked = Duration::ZERO;
        let mut passed = Duration::ZERO;
        for failures in 1.. {
            blocked += wait;
            passed += wait + pause(failures);
            if passed > Duration::from_hours(1) {
                break;
            }
        }
        assert!(blocked < passed / 20, "{blocked:?} of {passed:?}");
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let difference = |oldest: &str| Difference {
            unknown: vec![1],
            oldest: (!oldest.is_empty()).then(|| oldest.to_owned()),
            ..Difference::default()
        };
        for serves in ["0.0.0", "0.0.10", OURS] {
            assert_eq!(difference(serves).outgrown(), None, "{serves}");
        }
        for (oldest, told) in [
            ("0.1.1", "0.1.1"),
            ("0.10.0", "0.10.0"),
            ("10.0.0", "10.0.0"),
            ("", "unknown"),
        ] {
            assert_eq!(
                difference(oldest).outgrown(),
                Some((1, told.to_owned())),
                "{oldest}"
            );
        }
        assert_eq!(Difference::default().outgrown(), None, "nothing is newer");
    }
}
