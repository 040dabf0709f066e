//! The receipt of a deletion: a page without personal data of the deleted user, to print and to
//! find again by its number, which is the id of the deletion's event.

use rocket::http::Status;
use rocket::{State, get};
use serde::Serialize;
use time::Duration;
use uuid::Uuid;

use crate::admin::changes::store::{self, DeletionRow};
use crate::admin::pages::{Failure, Page, Staff};
use crate::config::Events;
use crate::web::Db;

pub(in crate::admin) fn path(number: Uuid) -> String {
    format!("/admin/deletions/{number}")
}

#[derive(Serialize)]
struct Receipt {
    #[serde(flatten)]
    deletion: DeletionRow,
    retention_days: u32,
    /// The day on which the event of the deletion is deleted, too.
    until: Option<String>,
}

#[get("/deletions/<number>")]
pub(super) async fn receipt(
    staff: Staff,
    number: &str,
    db: &Db,
    events: &State<Events>,
) -> Result<Page, Failure> {
    let number = crate::admin::pages::changes::id(number)?;
    let deletion = db
        .run(|_| store::deletion(db, number))
        .await?
        .ok_or(Status::NotFound)?;
    let retention_days = events.retention_days;
    let until = deletion
        .created_at
        .date()
        .checked_add(Duration::days(retention_days.into()));
    let until = until.map(|day| day.to_string());
    Ok(Page::new(
        &staff,
        "admin/receipt",
        &Receipt {
            deletion,
            retention_days,
            until,
        },
    ))
}
