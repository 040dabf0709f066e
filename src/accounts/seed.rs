//! Made-up users for development and benches, written by `seed.sql`.

use sqlx::{Connection, Executor};
use strum::VariantArray;

use crate::database::{Database, Error};
use crate::domain::Reason;

/// The number of users per statement.
const BATCH: i32 = 5_000;

/// Statements get more time than in a request, and do not wait for the disk. A superuser also skips
/// the triggers: the rows refer only to each other, so nothing has to be looked up.
const SETTINGS: &str = "SET statement_timeout = 0; SET synchronous_commit = off;
    SELECT set_config('session_replication_role', 'replica', false)
    FROM pg_roles WHERE rolname = current_user AND rolsuper";

/// Restarts all walks: a walk notes in `cursors` how far it has read, and the new rows are before
/// that place.
const WALK_AGAIN: &str = "DELETE FROM event_counts;
    UPDATE cursors SET place = '00000000-0000-0000-0000-000000000000'";

#[derive(Debug, Clone, Copy, Default)]
pub struct Added {
    pub users: i64,
    pub identities: i64,
    pub sessions: i64,
    pub events: i64,
}

/// Adds made-up users, from the oldest account to the newest, and calls `progress` with the number
/// of users in each batch. The same `seed`, from -1 to 1, creates the same ones; without one, they
/// always differ. Batches written before an error stay.
pub async fn add_users(
    database: &Database,
    users: i32,
    seed: Option<f64>,
    mut progress: impl FnMut(i64),
) -> Result<Added, Error> {
    // The connection is not returned to the pool, because it keeps the settings and the functions.
    let mut connection = database.pool().acquire().await?.detach();
    connection.execute(SETTINGS).await?;
    connection.execute(include_str!("seed.sql")).await?;
    if let Some(seed) = seed {
        sqlx::query("SELECT setseed($1)")
            .bind(seed)
            .execute(&mut connection)
            .await?;
    }
    let run: String = sqlx::query_scalar("SELECT pg_temp.hex(8)")
        .fetch_one(&mut connection)
        .await?;
    let reasons = Reason::VARIANTS
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let mut all = Added::default();
    for first in (0..=(users - 1) / BATCH).map(|batch| batch * BATCH) {
        let (users, identities, sessions, events): (i64, i64, i64, i64) =
            sqlx::query_as("SELECT * FROM pg_temp.add_users($1, $2, $3, $4, $5)")
                .bind(first)
                .bind(users.min(first.saturating_add(BATCH)) - 1)
                .bind(users)
                .bind(&run)
                .bind(&reasons)
                .fetch_one(&mut connection)
                .await?;
        all.users += users;
        all.identities += identities;
        all.sessions += sessions;
        all.events += events;
        progress(users);
    }
    connection.execute(WALK_AGAIN).await?;
    // For the planner's statistics and the visibility maps.
    connection
        .execute("VACUUM (ANALYZE) users, identities, sessions, events")
        .await?;
    connection.close().await?;
    Ok(all)
}
