//! Users: who there is.

use rocket::{Route, State, get, routes};
use serde::Serialize;
use uuid::Uuid;

use super::failure::Failure;
use super::page::{Page, View};
use super::person::Person;
use crate::provider::Providers;
use crate::session::staff_looks::{Look, record};
use crate::store::directory;
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, Staff};

/// Users on a page.
const PAGE: i64 = 50;
/// Longest text that is searched for, in characters.
const MAX_QUERY: usize = 254;

pub(super) fn routes() -> Vec<Route> {
    routes![list]
}

#[derive(Serialize)]
pub(super) struct Users {
    /// What was searched for; empty when everybody is listed.
    query: String,
    people: Vec<Person>,
    /// Where the next page begins.
    next: Option<Uuid>,
    /// Whether there are more than these.
    more: bool,
}

impl View for Users {
    const TEMPLATE: &'static str = "admin/users";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use super::samples;
        let people = || vec![samples::person(false), samples::person(true), samples::nobody()];
        vec![
            Self { query: String::new(), people: Vec::new(), next: None, more: false },
            Self { query: samples::NASTY.into(), people: Vec::new(), next: None, more: false },
            Self { query: samples::NASTY.into(), people: people(), next: None, more: true },
            Self { query: String::new(), people: people(), next: Some(Uuid::max()), more: true },
        ]
    }
}

#[get("/users?<q>&<before>")]
async fn list(
    staff: Staff,
    q: Option<&str>,
    before: Option<&str>,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let query: String = q.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_QUERY).collect();
    let query = query.trim();
    let mut users = if query.is_empty() {
        // A cursor that is none of ours begins at the beginning.
        let before = before.and_then(|id| Uuid::parse_str(id).ok());
        directory::page(db.pool(), before, PAGE + 1).await?
    } else {
        directory::search(db.pool(), query, &providers.names(), PAGE + 1).await?
    };
    record(db.pool(), &staff.member, &Look::Users { search: query }, &origin.0).await?;
    let more = users.len() > usize::try_from(PAGE).unwrap_or(usize::MAX);
    users.truncate(usize::try_from(PAGE).unwrap_or(usize::MAX));
    let next = users.last().filter(|_| more && query.is_empty()).map(|user| user.id);
    let people = users.into_iter().map(Person::from).collect();
    Ok(Page::new(&staff, &Users { query: query.to_owned(), people, next, more }))
}
