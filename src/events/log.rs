//! The place up to which events are in the log.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::database::{Database, Error};

/// Sets the place to now, unless it has been set before.
pub async fn begin(database: &Database) -> Result<(), Error> {
    let begun = sqlx::query!(
        "UPDATE cursors SET place = first_id(now())
         WHERE walk = 'logged_events' AND place = '00000000-0000-0000-0000-000000000000'"
    );
    begun.execute(database).await?;
    Ok(())
}

/// Locks the place for a transaction and returns it; `None` if another instance has locked it.
pub async fn take_turn(transaction: &mut PgConnection) -> Result<Option<Uuid>, Error> {
    let place = sqlx::query_scalar!(
        "SELECT place FROM cursors WHERE walk = 'logged_events' FOR UPDATE SKIP LOCKED"
    );
    Ok(place.fetch_optional(transaction).await?)
}

/// Moves the place to an event.
pub async fn move_on(transaction: &mut PgConnection, event: Uuid) -> Result<(), Error> {
    let moved = sqlx::query!(
        "UPDATE cursors SET place = $1 WHERE walk = 'logged_events'",
        event
    );
    moved.execute(transaction).await?;
    Ok(())
}
