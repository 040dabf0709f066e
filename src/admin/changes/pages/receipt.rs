//! The receipt of a deletion: a page without personal data of the deleted user, to print and to find again by its number,
//! which is the id of the deletion's event.

use rocket::http::Status;
use rocket::{State, get};
use serde::Serialize;
use time::{Date, Duration, OffsetDateTime};
use uuid::Uuid;

use crate::admin::changes::store::{self, DeletionRow};
use crate::admin::{Failure, Page, Staff};
use crate::config::Events;
use crate::store::retrying;
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

/// Returns the day on which an event is old enough to be deleted.
fn until(at: OffsetDateTime, retention_days: u32) -> Option<Date> {
    at.date().checked_add(Duration::days(retention_days.into()))
}

#[get("/deletions/<number>")]
pub(super) async fn receipt(
    staff: Staff,
    number: &str,
    db: &Db,
    events: &State<Events>,
) -> Result<Page, Failure> {
    let number = super::id(number)?;
    let deletion = retrying!(store::deletion(db.pool(), number))?.ok_or(Status::NotFound)?;
    let retention_days = events.retention_days;
    let until = until(deletion.created_at, retention_days).map(|day| day.to_string());
    Ok(Page::new(&staff, "admin/receipt", &Receipt { deletion, retention_days, until }))
}

#[cfg(test)]
mod tests {
    use time::Month;

    use super::*;

    #[test]
    fn a_receipt_goes_when_its_event_is_old_enough() {
        for (year, month, day, days, expected) in [
            (2026, Month::November, 22, 400, "2027-12-27"),
            (2026, Month::December, 31, 1, "2027-01-01"),
            (2028, Month::February, 29, 1, "2028-03-01"),
        ] {
            let at = Date::from_calendar_date(year, month, day).unwrap().midnight().assume_utc();
            assert_eq!(until(at, days).unwrap().to_string(), expected);
        }
    }
}
