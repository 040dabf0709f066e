//! The time up to which all events are visible, for every task that reads events once, in the order
//! of their ids.

use std::time::Duration;

use time::OffsetDateTime;

use crate::database::{Database, Error};

/// The longest time from the draw of an id to the first write of its transaction: a request takes
/// at most 20 seconds, its statement 10, and the rest is for differences between the instances'
/// clocks.
pub const DRAWN: Duration = Duration::from_mins(1);

/// Returns the latest time, by the database's clock, for which all transactions that had written
/// by then are known to have ended. Later statements see their events: all events whose ids are at
/// least [`DRAWN`] older than that time.
///
/// `settle_events` sets a mark. The mark is returned once all older transactions have ended,
/// whichever role they belong to. Until then the mark before it is returned.
pub async fn settled(database: &Database) -> Result<OffsetDateTime, Error> {
    sqlx::query!("SELECT settle_events()")
        .execute(database)
        .await?;
    let settled = sqlx::query_scalar!(
        r#"SELECT CASE WHEN has_older_writers(xmin) THEN settled_at ELSE marked_at END AS "settled!" FROM settled_events"#
    );
    Ok(settled.fetch_one(database).await?)
}
