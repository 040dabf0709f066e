//! Hourly counts of events. A task counts each event once, so that a page counts only the events of
//! the last minutes.

use std::time::Duration;

use time::OffsetDateTime;

use crate::database::{Database, Error};
use crate::events::settled::settled;

/// The number of events per statement.
const STEP: i64 = 20_000;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub struct CountRow {
    pub hour: OffsetDateTime,
    pub kind: String,
    /// Reason of refusals; otherwise empty.
    pub reason: String,
    pub provider: String,
    pub count: i64,
}

/// Counts the next `step` events that are old enough; see `counts.sql`. Returns `false` if there
/// are no such events, or if another instance is counting.
pub async fn count(database: &Database, step: i64) -> Result<bool, Error> {
    let counted = sqlx::query_file!("src/events/counts.sql", step, settled(database).await?);
    Ok(counted.execute(database).await?.rows_affected() > 0)
}

/// Returns the counts since a time: the stored counts, and counts of the later events that they do
/// not include yet.
pub async fn since(database: &Database, from: OffsetDateTime) -> Result<Vec<CountRow>, Error> {
    let rows = sqlx::query_as!(
        CountRow,
        r#"SELECT hour AS "hour!", kind AS "kind!", reason AS "reason!", provider AS "provider!", count AS "count!"
           FROM event_counts WHERE hour >= $1
           UNION ALL
           SELECT date_bin('1 hour', created_at, 'epoch'), kind, coalesce(reason, ''), coalesce(provider, ''), count(*)
           FROM events
           WHERE id > (SELECT place FROM cursors WHERE walk = 'events')
                 AND created_at >= $1
                 AND kind IN ('signed_in', 'user_created', 'identity_linked', 'sign_in_refused')
           GROUP BY 1, 2, 3, 4"#,
        from,
    );
    Ok(rows.fetch_all(database).await?)
}

/// Counts all events that are old enough. After an error, earlier counts stay.
pub async fn catch_up(database: &Database) -> Result<(), Error> {
    while database.run(|_| count(database, STEP)).await? {}
    Ok(())
}

/// Counts for as long as the program runs. Of several instances, one does so at a time.
pub async fn keep_counting(database: Database) {
    while !database.is_closed() {
        if let Err(error) = catch_up(&database).await {
            tracing::warn!(%error, "counting events failed and will be retried");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
