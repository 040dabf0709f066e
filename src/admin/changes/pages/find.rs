//! The search for the second user of a change.

use rocket::State;
use rocket::http::Status;
use serde::Serialize;
use uuid::Uuid;

use crate::admin::access_log::{Look, record};
use crate::admin::failure::Failure;
use crate::admin::guard::AdminStaff;
use crate::admin::page::View;
use crate::admin::person::Person;
use crate::admin::person::store;
use crate::admin::users::store::Filters;
use crate::admin::users::store::search::search;
use crate::provider::Providers;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

/// The number of users on the page.
const PAGE: usize = 10;
/// The longest search text, in characters.
const MAX_QUERY: usize = 254;

/// A link to the next step.
#[derive(Serialize)]
pub(super) struct Link {
    pub href: String,
    pub text: String,
}

#[derive(Serialize)]
struct Match {
    person: Person,
    links: Vec<Link>,
}

/// The page of the search.
#[derive(Serialize)]
pub(in crate::admin) struct Find {
    title: &'static str,
    lead: String,
    /// The user on whose page the change began.
    person: Uuid,
    name: String,
    /// The path to which the search is sent.
    path: String,
    query: String,
    matches: Vec<Match>,
    /// True if more users match.
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
        use crate::admin::samples::{self, NASTY};
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

/// Returns the user, the search text, the other users found, and `true` if there are more.
pub(super) async fn found(
    staff: &AdminStaff,
    user: Uuid,
    q: Option<&str>,
    providers: &State<Providers>,
    db: &Db,
    origin: &ClientOrigin,
) -> Result<(Person, String, Vec<Person>, bool), Failure> {
    let person = Person::from(store::user(db.pool(), user).await?.ok_or(Status::NotFound)?);
    record(db.pool(), &staff.0.member, &Look::Person(user), &origin.0).await?;
    let query: String = q.unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_QUERY).collect();
    let query = query.trim().to_owned();
    if query.is_empty() {
        return Ok((person, query, Vec::new(), false));
    }
    // One more, since the user may be among the results.
    let found = search(db.pool(), &query, &providers.names(), &Filters::default(), PAGE + 1).await?;
    let mut users = found.users;
    record(db.pool(), &staff.0.member, &Look::Users { search: &query }, &origin.0).await?;
    users.retain(|other| other.id != user);
    let more = found.more || users.len() > PAGE;
    users.truncate(PAGE);
    Ok((person, query, users.into_iter().map(Person::from).collect(), more))
}
