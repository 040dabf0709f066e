//! Bulk writes of generated rows.

use std::fmt::Display;
use std::sync::{Arc, Mutex};

use sqlx::{AssertSqlSafe, Connection, Executor, PgPool};
use strum::VariantArray;
use tokio::task::JoinSet;

use super::Error;
use super::copy::Rows;

/// The number of connections that write at the same time.
pub const CONNECTIONS: usize = 2;

/// A table to fill; referenced ones precede those that refer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Table {
    Users,
    Identities,
    Sessions,
    Events,
}

impl Table {
    /// Returns the `COPY` statement, with columns in the order of the values of [`Batch::push`].
    const fn copy(self) -> &'static str {
        match self {
            Self::Users => {
                "COPY users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, last_seen_on)
                 FROM STDIN"
            }
            Self::Identities => {
                "COPY identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at,
                                  updated_at)
                 FROM STDIN"
            }
            Self::Sessions => {
                "COPY sessions (id, identity_id, family_hash, token_hash, parent_hash, created_at, rotated_at,
                                expires_at, ended_at, client_id, device_name, device_platform)
                 FROM STDIN"
            }
            Self::Events => {
                "COPY events (id, created_at, kind, reason, provider, email, user_id, session_id, ip, user_agent,
                              request_id, detail)
                 FROM STDIN"
            }
        }
    }
}

/// A few thousand rows that refer only to each other.
#[derive(Debug, Default)]
pub struct Batch {
    tables: [Rows; Table::VARIANTS.len()],
    rows: [usize; Table::VARIANTS.len()],
}

impl Batch {
    /// Adds a row; `None` is NULL.
    pub fn push(&mut self, table: Table, values: &[Option<&dyn Display>]) {
        self.tables[table as usize].push(values);
        self.rows[table as usize] += 1;
    }

    /// Returns the number of rows for a table.
    #[must_use]
    pub const fn rows(&self, table: Table) -> usize {
        self.rows[table as usize]
    }
}

/// Writes a batch in one transaction.
pub async fn write(pool: &PgPool, batch: &Batch) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute(UNWATCHED).await?;
    for &table in Table::VARIANTS {
        batch.tables[table as usize].send(&mut transaction, table.copy()).await?;
    }
    Ok(transaction.commit().await?)
}

/// Spares a transaction the wait for the disk and, if the role may, the triggers: rows of a batch refer only to each
/// other, so nothing has to be looked up.
const UNWATCHED: &str = "SET LOCAL synchronous_commit = off;
     SELECT set_config('session_replication_role', 'replica', true)
     FROM pg_roles WHERE rolname = current_user AND rolsuper";

/// Drops the indexes of users, identities and sessions if there are hardly any users yet, since creating them later
/// takes less time. Constraints stay. A table remembers the indexes, so that an interrupted run loses none.
pub async fn drop_indexes(pool: &PgPool) -> Result<(), Error> {
    Ok(pool.execute(DROP).await.map(drop)?)
}

const DROP: &str = "DO $$
DECLARE
    index record;
BEGIN
    IF EXISTS (SELECT FROM users OFFSET 1000) THEN
        RETURN;
    END IF;
    CREATE TABLE dropped_indexes AS
    SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition, c.relam = (
        SELECT oid FROM pg_am WHERE amname = 'gin') AS slow
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid IN ('users'::regclass, 'identities'::regclass, 'sessions'::regclass) AND NOT i.indisunique;
    FOR index IN SELECT name FROM dropped_indexes LOOP
        EXECUTE 'DROP INDEX ' || index.name;
    END LOOP;
END $$";

/// Creates the indexes again that [`drop_indexes`] has dropped, in this run or in one that was interrupted.
///
/// # Errors
/// Some are missing, and the next call creates them; see [`Error`].
pub async fn create_indexes(pool: &PgPool) -> Result<(), Error> {
    if sqlx::query("SELECT 1 WHERE to_regclass('dropped_indexes') IS NOT NULL")
        .fetch_optional(pool)
        .await?
        .is_none()
    {
        return Ok(());
    }
    let dropped = "SELECT name, definition FROM dropped_indexes ORDER BY slow DESC";
    let dropped: Vec<(String, String)> = sqlx::query_as(dropped).fetch_all(pool).await?;
    for_each(pool, dropped, create_index).await?;
    Ok(pool.execute("DROP TABLE dropped_indexes").await.map(drop)?)
}

async fn create_index(pool: PgPool, (name, definition): (String, String)) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    // This takes longer than a request may.
    transaction.execute("SET LOCAL statement_timeout = 0; SET LOCAL maintenance_work_mem = '256MB'").await?;
    transaction.execute(AssertSqlSafe(definition)).await?;
    sqlx::query("DELETE FROM dropped_indexes WHERE name = $1").bind(name).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

/// Lets all walks begin again: they read each row once, and these are behind their places.
pub async fn walk_again(pool: &PgPool) -> Result<(), Error> {
    let again = "DELETE FROM event_counts;
                 UPDATE places SET place = '00000000-0000-0000-0000-000000000000'";
    Ok(pool.execute(again).await.map(drop)?)
}

/// Updates the planner's statistics and the visibility maps.
pub async fn analyze(pool: &PgPool) -> Result<(), Error> {
    for_each(pool, vec!["identities", "events", "users", "sessions"], analyze_table).await
}

async fn analyze_table(pool: PgPool, table: &'static str) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    // This takes longer than a request may.
    connection.execute("SET statement_timeout = 0").await?;
    connection.execute(AssertSqlSafe(format!("VACUUM (ANALYZE) {table}"))).await?;
    connection.execute("RESET statement_timeout").await?;
    Ok(())
}

/// Does the same with each item, on several connections at a time.
async fn for_each<T: Send + 'static, F>(
    pool: &PgPool,
    items: Vec<T>,
    work: fn(PgPool, T) -> F,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let left = Arc::new(Mutex::new(items.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (pool, left) = (pool.clone(), Arc::clone(&left));
        workers.spawn(async move {
            loop {
                let next = left.lock().ok().and_then(|mut left| left.next());
                let Some(item) = next else { return Ok(()) };
                work(pool.clone(), item).await?;
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        // A task fails only if it panics.
        done.unwrap_or_else(|_| Err(Error::late()))?;
    }
    Ok(())
}
