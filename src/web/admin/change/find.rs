//! Finding the other person whom a change concerns.

use rocket::State;
use rocket::http::Status;
use serde::Serialize;
use uuid::Uuid;

use crate::provider::Providers;
use crate::session::staff_looks::{Look, record};
use crate::store::directory;
use crate::store::listing::Filters;
use crate::store::listing::search::search;
use crate::web::admin::failure::Failure;
use crate::web::admin::page::View;
use crate::web::admin::person::Person;
use crate::web::database::Db;
use crate::web::guard::{AdminStaff, ClientOrigin};

/// People on the page.
const PAGE: usize = 10;
/// Longest text that is searched for, in characters.
const MAX_QUERY: usize = 254;

/// A way to go on.
#[derive(Serialize)]
pub(super) struct Link {
    pub href: String,
    pub text: String,
}

/// Somebody who was found.
#[derive(Serialize)]
struct Match {
    person: Person,
    links: Vec<Link>,
}

/// The search for the other one.
#[derive(Serialize)]
pub(in crate::web::admin) struct Find {
    title: &'static str,
    lead: String,
    /// Whose page this began at.
    person: Uuid,
    name: String,
    /// Where the search goes.
    path: String,
    query: String,
    matches: Vec<Match>,
    /// Whether there are more than these.
    more: bool,
}

impl Find {
    pub(super) fn new(
        title: &'static str,
        lead: impl Into<String>,
        person: &Person,
        path: String,
        query: String,
        people: Vec<(Person, Vec<Link>)>,
        more: bool,
    ) -> Self {
        let matches = people.into_iter().map(|(person, links)| Match { person, links }).collect();
        let lead = lead.into();
        Self { title, lead, person: person.id, name: person.called(), path, query, matches, more }
    }
}

impl View for Find {
    const TEMPLATE: &'static str = "admin/find";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use crate::web::admin::samples::{self, NASTY};
        let find = |query: &str, people: Vec<Person>, more| {
            let link = || Link { href: "/admin/users".into(), text: NASTY.into() };
            let people = people.into_iter().map(|person| (person, vec![link(), link()])).collect();
            let path = "/admin/users".to_owned();
            Self::new("Merge two users", "Find them.", &samples::nobody(), path, query.into(), people, more)
        };
        vec![
            find("", Vec::new(), false),
            find(NASTY, Vec::new(), false),
            find(NASTY, vec![samples::person(false), samples::nobody(), samples::person(true)], true),
        ]
    }
}

/// The person, what is searched for, who is found but for that person, and whether there are more.
pub(super) async fn found(
    staff: &AdminStaff,
    user: Uuid,
    q: Option<&str>,
    providers: &State<Providers>,
    db: &Db,
    origin: &ClientOrigin,
) -> Result<(Person, String, Vec<Person>, bool), Failure> {
    let person = Person::from(directory::user(db.pool(), user).await?.ok_or(Status::NotFound)?);
    record(db.pool(), &staff.0.member, &Look::Person(user), &origin.0).await?;
    let query: String = q.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_QUERY).collect();
    let query = query.trim().to_owned();
    if query.is_empty() {
        return Ok((person, query, Vec::new(), false));
    }
    // One more, since the person may be among them.
    let found = search(db.pool(), &query, &providers.names(), &Filters::default(), PAGE + 1).await?;
    let mut users = found.users;
    record(db.pool(), &staff.0.member, &Look::Users { search: &query }, &origin.0).await?;
    users.retain(|other| other.id != user);
    let more = found.more || users.len() > PAGE;
    users.truncate(PAGE);
    Ok((person, query, users.into_iter().map(Person::from).collect(), more))
}
