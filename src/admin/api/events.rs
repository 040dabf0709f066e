//! The events of one user, and the feed of all events for a backend that would rather poll than
//! receive webhooks.

use rocket::get;
use rocket::http::Status;
use rocket::http::uri::Origin;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::ToSchema;
use uuid::Uuid;

use super::guard::Reader;
use super::parameters::{Parameters, wrong};
use super::store::{self, EventRow};
use super::user;
use super::users::{NoSuchUser, Wrong, missing};
use crate::events::first_id;
use crate::web::{Db, Json, Problem, Problems, resource};

/// The number of events on a page, if the request names none, and the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

resource!("Administration": list_user_events, follow_events);

/// A page of a user's events.
#[derive(Serialize, ToSchema)]
struct UserEvents {
    /// The events, newest first.
    events: Vec<EventRow>,
    /// The `cursor` of the next page; `null` on the last.
    #[schema(required = true)]
    next: Option<Uuid>,
}

/// A part of the feed.
#[derive(Serialize, ToSchema)]
struct EventFeed {
    /// The events, oldest first.
    events: Vec<EventRow>,
    /// The `after` of the next request, even if there are no events yet.
    next: Uuid,
}

/// List a user's events
///
/// Returns the user's events, including views by staff, newest first. Events outlive the user.
#[utoipa::path(
    params(
        ("id" = Uuid, Path, description = "The user's `id`."),
        ("cursor" = Option<Uuid>, Query, description = "The `next` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "The most events on the page; 100 by default."),
    ),
    responses(
        (status = 200, description = "The page.", body = UserEvents),
        Problems<((Reader, Db, Wrong), NoSuchUser)>,
    ),
)]
#[get("/users/<id>/events")]
async fn list_user_events(
    _key: Reader,
    id: &str,
    uri: &Origin<'_>,
    db: &Db,
) -> Result<Json<UserEvents>, Problem> {
    let mut asked = Parameters::of(uri);
    let limit = asked.limit(PAGE, MAX_PAGE)?;
    let before = asked.take("cursor", uuid, "must be the `next` of the page before")?;
    asked.end()?;
    let id = user(id)?;
    // An extra row shows that there is another page.
    let mut rows = db
        .run(|_| store::events_of(db, id, before.unwrap_or(Uuid::max()), limit + 1))
        .await?;
    if rows.is_empty() && !db.run(|_| store::exists(db, id)).await? && before.is_none() {
        return Err(missing(db, id).await);
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|event| event.id);
    Ok(Json(Status::Ok, UserEvents { events: rows, next }))
}

/// Follow all events
///
/// Returns the events after a place, oldest first, for a backend that would rather poll than
/// receive webhooks. Keep `next`, and send it as `after` of the next request: then you get each
/// event exactly once. Events appear after one to two minutes, so that a late commit cannot fall
/// behind your place. The event of an import is written at its start, and its counts are updated
/// while it runs.
#[utoipa::path(
    params(
        ("after" = Option<Uuid>, Query, description = "The `next` of the previous answer. Without it, the feed begins with the oldest event."),
        ("since" = Option<String>, Query, format = DateTime, example = "2026-01-31T00:00:00Z",
         description = "The time at which to begin, in place of `after`."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "The most events in the answer; 100 by default."),
    ),
    responses(
        (status = 200, description = "The events, perhaps none.", body = EventFeed),
        Problems<(Reader, Db, Wrong)>,
    ),
)]
#[get("/events")]
async fn follow_events(
    _key: Reader,
    uri: &Origin<'_>,
    db: &Db,
) -> Result<Json<EventFeed>, Problem> {
    let mut asked = Parameters::of(uri);
    let limit = asked.limit(PAGE, MAX_PAGE)?;
    let after = asked.take("after", uuid, "must be the `next` of the previous answer")?;
    let since = asked.take(
        "since",
        begin,
        "must be a time such as 2026-01-31T00:00:00Z",
    )?;
    asked.end()?;
    if after.is_some() && since.is_some() {
        return Err(wrong(
            "`after` and `since` are two places to begin at; send one".into(),
        ));
    }
    let after = after.or(since).unwrap_or_default();
    let rows = db.run(|_| store::events_after(db, after, limit)).await?;
    let next = rows.last().map_or(after, |event| event.id);
    Ok(Json(Status::Ok, EventFeed { events: rows, next }))
}

fn uuid(text: &str) -> Option<Uuid> {
    Uuid::parse_str(text).ok()
}

/// Returns a place before all events of a time.
fn begin(text: &str) -> Option<Uuid> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    // With an offset, the first and the last days of the calendar do not exist in UTC.
    Some(first_id(time.checked_to_utc()?.into()))
}
