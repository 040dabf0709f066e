//! Users: who there is, searched, filtered and in order.

use rocket::futures::stream::{StreamExt, try_unfold};
use rocket::{FromForm, Route, get, routes};
use serde::Serialize;
use time::Date;
use time::format_description::well_known::Iso8601;
use url::form_urlencoded;

use super::csv::{Csv, Rows};
use super::failure::Failure;
use super::page::{Page, View};
use super::person::Person;
use crate::domain::email::Email;
use crate::session::staff_looks::{Look, record};
use crate::store::listing::search::search;
use crate::store::listing::{self, Cursor, Days, Filters, ListedUser, Sort, Status, count};
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, Staff};
use crate::web::wire_time::rfc3339;

/// Users on a page.
const PAGE: usize = 50;
/// Users that an export reads at a time.
const BATCH: usize = 2_000;
/// Longest text in a field, in characters.
const MAX_FIELD: usize = Email::MAX_LENGTH;
/// The columns of an export.
const HEADING: [&str; 8] =
    ["id", "email", "email_verified", "name", "created_at", "last_seen_on", "disabled_at", "providers"];

pub(super) fn routes() -> Vec<Route> {
    routes![list, export]
}

/// What is asked for, as it stands in the address.
#[derive(FromForm)]
struct Query<'r> {
    q: Option<&'r str>,
    provider: Option<&'r str>,
    status: Option<&'r str>,
    created_from: Option<&'r str>,
    created_to: Option<&'r str>,
    seen_from: Option<&'r str>,
    seen_to: Option<&'r str>,
    sort: Option<&'r str>,
    at: Option<&'r str>,
}

/// The same, tidied: what the form shows again.
#[derive(Default, Serialize)]
struct Asked {
    q: String,
    provider: String,
    status: &'static str,
    created_from: String,
    created_to: String,
    seen_from: String,
    seen_to: String,
    sort: &'static str,
}

/// Text that may be shown and searched for.
fn tidy(field: Option<&str>) -> String {
    let shown = field.unwrap_or_default().chars().filter(|c| !c.is_control());
    shown.take(MAX_FIELD).collect::<String>().trim().to_owned()
}

/// A day as forms send it. What is none asks for nothing.
fn day(text: &str) -> Option<Date> {
    Date::parse(text, &Iso8601::DATE).ok()
}

impl Query<'_> {
    fn tidy(&self) -> Asked {
        let date = |field| Some(tidy(field)).filter(|text| day(text).is_some()).unwrap_or_default();
        Asked {
            q: tidy(self.q),
            provider: tidy(self.provider),
            status: self.status.and_then(Status::from_name).map_or("", Status::name),
            created_from: date(self.created_from),
            created_to: date(self.created_to),
            seen_from: date(self.seen_from),
            seen_to: date(self.seen_to),
            sort: self.sort.and_then(Sort::from_name).unwrap_or_default().name(),
        }
    }
}

impl Asked {
    fn filters(&self) -> Filters {
        Filters {
            provider: Some(self.provider.clone()).filter(|name| !name.is_empty()),
            status: Status::from_name(self.status),
            created: Days { from: day(&self.created_from), to: day(&self.created_to) },
            last_seen: Days { from: day(&self.seen_from), to: day(&self.seen_to) },
        }
    }

    fn sort(&self) -> Sort {
        Sort::from_name(self.sort).unwrap_or_default()
    }

    /// The fields that are not empty, as they stand in an address; the order only where it is asked for.
    fn query(&self, sorted: bool) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("q", &*self.q),
            ("provider", &self.provider),
            ("status", self.status),
            ("created_from", &self.created_from),
            ("created_to", &self.created_to),
            ("seen_from", &self.seen_from),
            ("seen_to", &self.seen_to),
            ("sort", if sorted && self.sort() != Sort::default() { self.sort } else { "" }),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.finish()
    }
}

/// A choice of a form.
#[derive(Serialize)]
struct Choice {
    value: &'static str,
    label: &'static str,
}

const fn status_label(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Disabled => "disabled",
        Status::Unverified => "address not verified",
    }
}

const fn sort_label(sort: Sort) -> &'static str {
    match sort {
        Sort::Newest => "newest first",
        Sort::Oldest => "oldest first",
        Sort::LastSeen => "last seen first",
        Sort::Email => "by address",
        Sort::Name => "by name",
    }
}

/// A user in the list.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    person: Person,
    last_seen_on: Option<String>,
}

impl From<ListedUser> for Listed {
    fn from(user: ListedUser) -> Self {
        let person = Person {
            id: user.id,
            email: user.email,
            email_verified: user.email_verified,
            name: user.name,
            created_at: rfc3339(user.created_at),
            disabled_at: user.disabled_at.map(rfc3339),
            providers: user.providers,
        };
        Self { last_seen_on: user.last_seen_on.map(|day| day.to_string()), person }
    }
}

#[derive(Serialize)]
pub(super) struct Users {
    asked: Asked,
    /// Names of the providers to choose from.
    providers: Vec<String>,
    statuses: Vec<Choice>,
    sorts: Vec<Choice>,
    people: Vec<Listed>,
    /// How many there are, about; none when they are all on the page.
    about: Option<u64>,
    /// Whether a search has found more than these.
    more: bool,
    /// Where the pages before and after begin.
    before: Option<String>,
    after: Option<String>,
    /// What is asked for, for further addresses, with the order and without.
    query: String,
    unsorted: String,
    /// Whether anything is asked for beside a text.
    filtered: bool,
}

impl Users {
    fn new(asked: Asked, providers: Vec<String>, people: Vec<ListedUser>) -> Self {
        let choice = |value, label| Choice { value, label };
        Self {
            providers,
            statuses: Status::ALL.map(|status| choice(status.name(), status_label(status))).into(),
            sorts: Sort::ALL.map(|sort| choice(sort.name(), sort_label(sort))).into(),
            people: people.into_iter().map(Listed::from).collect(),
            about: None,
            more: false,
            before: None,
            after: None,
            query: asked.query(true),
            unsorted: asked.query(false),
            filtered: !asked.filters().is_empty() || asked.sort() != Sort::default(),
            asked,
        }
    }
}

impl View for Users {
    const TEMPLATE: &'static str = "admin/users";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use super::samples::{self, NASTY};
        let people = || {
            let listed =
                |person, seen: bool| Listed { person, last_seen_on: seen.then(|| "2026-07-01".into()) };
            vec![
                listed(samples::person(false), true),
                listed(samples::person(true), false),
                listed(samples::nobody(), false),
            ]
        };
        let asked = || Asked {
            q: NASTY.into(),
            provider: NASTY.into(),
            status: "disabled",
            created_from: "2026-07-01".into(),
            sort: "email",
            ..Asked::default()
        };
        let empty = |asked| Self::new(asked, vec![NASTY.into()], Vec::new());
        let cursor = || Some(NASTY.to_owned());
        vec![
            empty(Asked { sort: "newest", ..Asked::default() }),
            empty(asked()),
            empty(Asked { q: String::new(), ..asked() }),
            Self { people: people(), more: true, ..empty(asked()) },
            Self {
                people: people(),
                about: Some(1_234_567),
                before: cursor(),
                after: cursor(),
                ..empty(asked())
            },
        ]
    }
}

#[get("/users?<query..>")]
async fn list(staff: Staff, query: Query<'_>, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let asked = query.tidy();
    let filters = asked.filters();
    let providers = listing::providers(db.pool()).await?;
    record(db.pool(), &staff.member, &Look::Users { search: &asked.query(true) }, &origin.0).await?;
    if !asked.q.is_empty() {
        let found = search(db.pool(), &asked.q, &providers, &filters, PAGE).await?;
        let view = Users { more: found.more, ..Users::new(asked, providers, found.users) };
        return Ok(Page::new(&staff, &view));
    }
    // A cursor that is none of ours begins at the beginning.
    let start = query.at.and_then(Cursor::decode);
    let page = listing::page(db.pool(), &filters, asked.sort(), start.as_ref(), PAGE).await?;
    let whole = page.before.is_none() && page.after.is_none();
    let about = if whole { None } else { Some(count::estimate(db.pool(), &filters).await?) };
    let (before, after) = (page.before.map(|at| at.encode()), page.after.map(|at| at.encode()));
    let view = Users { about, before, after, ..Users::new(asked, providers, page.users) };
    Ok(Page::new(&staff, &view))
}

#[get("/users.csv?<query..>")]
async fn export(staff: Staff, query: Query<'_>, db: &Db, origin: ClientOrigin) -> Result<Csv, Failure> {
    let asked = query.tidy();
    record(db.pool(), &staff.member, &Look::UsersExport { search: &asked.query(true) }, &origin.0).await?;
    let (pool, filters, sort) = (db.pool().clone(), asked.filters(), asked.sort());
    if !asked.q.is_empty() {
        let providers = listing::providers(&pool).await?;
        let found = search(&pool, &asked.q, &providers, &filters, BATCH).await?;
        let rows = rocket::futures::stream::once(std::future::ready(Ok(rows(found.users))));
        return Ok(Csv::new("users", &HEADING, rows.boxed()));
    }
    // Each batch is a statement of its own: whoever reads slowly holds no connection meanwhile.
    let batches = try_unfold(Some(None::<Cursor>), move |start| {
        let (pool, filters) = (pool.clone(), filters.clone());
        async move {
            let Some(start) = start else { return Ok(None) };
            let page = listing::page(&pool, &filters, sort, start.as_ref(), BATCH).await?;
            Ok(Some((rows(page.users), page.after.map(Some))))
        }
    });
    Ok(Csv::new("users", &HEADING, batches.boxed()))
}

fn rows(users: Vec<ListedUser>) -> Rows {
    let row = |user: ListedUser| {
        vec![
            user.id.to_string(),
            user.email.unwrap_or_default(),
            user.email_verified.to_string(),
            user.name.unwrap_or_default(),
            rfc3339(user.created_at),
            user.last_seen_on.map(|day| day.to_string()).unwrap_or_default(),
            user.disabled_at.map(rfc3339).unwrap_or_default(),
            user.providers.join(" "),
        ]
    };
    users.into_iter().map(row).collect()
}
