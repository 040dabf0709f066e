//! The audit: everything that happened.

use rocket::{Route, get, routes};
use serde::Serialize;

use super::failure::Failure;
use super::happened::Happened;
use super::page::{Page, View};
use crate::domain::email::Email;
use crate::session::staff_looks::{Look, record};
use crate::store::directory;
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, Staff};

/// Events on a page.
const PAGE: i64 = 200;

pub(super) fn routes() -> Vec<Route> {
    routes![audit]
}

#[derive(Serialize)]
pub(super) struct Audit {
    email: String,
    events: Vec<Happened>,
}

impl View for Audit {
    const TEMPLATE: &'static str = "admin/audit";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let nothing = Self { email: super::samples::NASTY.into(), events: Vec::new() };
        vec![nothing, Self { email: String::new(), events: Happened::samples() }]
    }
}

#[get("/audit?<email>")]
async fn audit(staff: Staff, email: Option<&str>, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let typed: String = email.unwrap_or_default().trim().chars().take(Email::MAX_LENGTH).collect();
    let address = Email::parse(&typed);
    // What is no address was claimed by nobody.
    let events = match (&address, typed.is_empty()) {
        (None, false) => Vec::new(),
        (address, _) => directory::events(db.pool(), address.as_ref().map(Email::folded), PAGE).await?,
    };
    record(db.pool(), &staff.member, &Look::Audit { search: &typed }, &origin.0).await?;
    let events = events.into_iter().map(Happened::from).collect();
    Ok(Page::new(&staff, &Audit { email: typed, events }))
}
