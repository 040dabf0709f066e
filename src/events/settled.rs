//! The time before which all events are there, for everything that reads events once, in the order of their ids.

use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;

use crate::database::Error;

/// The time from the draw of an id to the first write of its transaction, at most: a request takes 20 seconds at most, its statement
/// 10, and the rest is for the clocks of the instances.
pub const DRAWN: Duration = Duration::from_mins(1);

/// Returns the latest time, by the database's clock, of which is known that each transaction that had written by then has ended. Their
/// events are seen by later statements. Events whose ids are from [`DRAWN`] before that time or earlier are complete.
///
/// A mark is set (`settle_events`), and is the answer once all transactions that are older than it have ended, whichever role they
/// belong to. Until then the mark before it is the answer.
pub async fn settled(pool: &PgPool) -> Result<OffsetDateTime, Error> {
    sqlx::query!("SELECT settle_events()").execute(pool).await?;
    let settled = sqlx::query_scalar!(
        r#"SELECT CASE WHEN has_older_writers(xmin) THEN settled_at ELSE marked_at END AS "settled!" FROM settled_events"#
    );
    Ok(settled.fetch_one(pool).await?)
}
