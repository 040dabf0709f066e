//! A log line for each event, for a system that collects the log and has no API key for the feed of
//! events.

use std::time::Duration;

use serde_json::Value;
use sqlx::Connection;
use time::format_description::well_known::Rfc3339;

use crate::admin::api::store::{EventRow, events_after};
use crate::database::{Database, Error};
use crate::events::log;
use crate::telemetry::lines;

/// The most events of one step. Their lines fit into the memory for lines that wait.
const STEP: usize = 500;
/// The pause after the latest event, and after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// Logs events for as long as the program runs, from the first start with the setting on, each at
/// least once. Of several instances, one does so at a time.
pub async fn keep_logging(database: Database) {
    while !database.is_closed() {
        match database.run(|_| step(&database)).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "logging events failed and will be retried"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Logs the next events. Returns `false` if there is no new event, if another instance logs events,
/// or if the reader of the log is too slow. In the last case, the next step logs the same events
/// again.
async fn step(database: &Database) -> Result<bool, Error> {
    log::begin(database).await?;
    let mut connection = database.acquire().await?;
    let mut turn = connection.begin().await?;
    let mut logged = None;
    if let Some(place) = log::take_turn(&mut turn).await? {
        let events = events_after(database, place, STEP).await?;
        let dropped = lines::dropped().get();
        let last = events.last().map(|event| event.id);
        events.into_iter().for_each(log);
        logged = last.filter(|_| lines::dropped().get() == dropped);
    }
    if let Some(last) = logged {
        log::move_on(&mut turn, last).await?;
        turn.commit().await?;
    } else {
        turn.rollback().await?;
    }
    connection.release();
    Ok(logged.is_some())
}

fn log(event: EventRow) {
    let mut detail = event.detail.unwrap_or_default();
    // Staff search for a person's name or address, which could not be erased from the log.
    if let Value::Object(members) = &mut detail {
        members.remove("search");
    }
    tracing::info!(
        event_id = %event.id,
        event_at = event.created_at.format(&Rfc3339).ok(),
        kind = event.kind,
        reason = event.reason,
        user_id = event.user_id.map(tracing::field::display),
        session_id = event.session_id.map(tracing::field::display),
        provider = event.provider,
        actor = event.actor,
        ip = event.ip,
        user_agent = event.user_agent,
        request_id = event.request_id,
        detail = (!detail.is_null()).then(|| tracing::field::display(detail)),
        "event"
    );
}
