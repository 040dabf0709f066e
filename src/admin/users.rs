//! The list of users, searched and filtered, on pages or as a file.

mod export;
mod query;
pub mod store;

use rocket::{Route, State, get, post, routes};
use serde::Serialize;
use strum::VariantArray;
use uuid::Uuid;

use self::query::{ListQuery, Parameters};
use self::store::search::{Found, Position, search};
use self::store::{Cursor, ListedUser, Sort, Status, count};
use super::csv::Csv;
use super::failure::Failure;
use super::fields::{Chip, Choice, NothingMatches};
use super::page::{Page, View};
use super::person::Person;
use crate::admin::access_log::{DataAccess, record};
use crate::admin::guard::{ExportingStaff, Staff, StaffForm};
use crate::domain::email::Email;
use crate::provider::Providers;
use crate::store::error::{Error, retrying};
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

/// The number of users on a page.
const PAGE: usize = 50;

pub(super) fn routes() -> Vec<Route> {
    routes![list, file]
}

#[derive(Serialize)]
pub(super) struct Listed {
    pub person: Person,
    last_seen_on: Option<String>,
}

impl From<ListedUser> for Listed {
    fn from(user: ListedUser) -> Self {
        let last_seen_on = user.last_seen_on.map(|day| day.to_string());
        Self { person: user.into(), last_seen_on }
    }
}

#[derive(Serialize)]
struct Column {
    label: &'static str,
    /// The end of the list's URL in the order of this column, or in its other direction.
    link: Option<String>,
    /// The current direction, as in `aria-sort`.
    sorted: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct Users {
    asked: ListQuery,
    chips: Vec<Chip>,
    providers: Vec<String>,
    statuses: Vec<Choice>,
    sorts: Vec<Choice>,
    columns: Vec<Column>,
    people: Vec<Listed>,
    /// The number of users, in words.
    count: String,
    /// The ends of the URLs of the first, the previous and the next page, if they exist.
    first: Option<String>,
    before: Option<String>,
    after: Option<String>,
    /// The end of the URL of the same list as a file.
    file: String,
    /// The e-mail address that was searched for, which refused attempts may have claimed.
    claimed: Option<String>,
    /// The user who remains, if the text is the id of one who was merged.
    remains: Option<Uuid>,
}

impl Users {
    fn new(asked: ListQuery, providers: Vec<String>, people: Vec<ListedUser>, count: String) -> Self {
        let status = |status: &Status| Choice { value: status.into(), label: status_label(*status) };
        let sort = |sort: &Sort| Choice { value: sort.into(), label: sort_label(*sort) };
        Self {
            chips: chips(&asked),
            providers,
            statuses: Status::VARIANTS.iter().map(status).collect(),
            sorts: Sort::VARIANTS.iter().map(sort).collect(),
            columns: columns(&asked),
            people: people.into_iter().map(Listed::from).collect(),
            count,
            first: None,
            before: None,
            after: None,
            file: asked.suffix(asked.sort(), None),
            claimed: Email::parse(&asked.q).map(|email| email.folded().to_owned()),
            remains: None,
            asked,
        }
    }

    fn with_links(mut self, first: bool, before: Option<String>, after: Option<String>) -> Self {
        let address = |at: Option<&str>| self.asked.suffix(self.asked.sort(), at);
        let first = (!first).then(|| address(None));
        let before = before.map(|at| address(Some(&at)));
        let after = after.map(|at| address(Some(&at)));
        (self.first, self.before, self.after) = (first, before, after);
        self
    }
}

fn chips(asked: &ListQuery) -> Vec<Chip> {
    let chip = |(name, value): (&str, &str)| {
        let label = match name {
            "provider" => format!("Signs in with: {value}"),
            "status" => {
                format!(
                    "Status: {}",
                    value.parse().map_or_else(|_| value.to_owned(), |status| status_label(status).to_owned())
                )
            }
            "created_from" => format!("Created from: {value}"),
            "created_to" => format!("Created to: {value}"),
            "seen_from" => format!("Last seen from: {value}"),
            _ => format!("Last seen to: {value}"),
        };
        Chip { label, href: format!("/admin/users{}", asked.without(name)) }
    };
    asked.filled().map(chip).collect()
}

const fn status_label(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Disabled => "disabled",
        Status::Unverified => "e-mail not verified",
        Status::Held => "identity held",
    }
}

const fn sort_label(sort: Sort) -> &'static str {
    match sort {
        Sort::Newest => "newest first",
        Sort::Oldest => "oldest first",
        Sort::LastSeen => "last seen first",
        Sort::Email => "by e-mail",
        Sort::Name => "by name",
    }
}

/// Returns the columns. A search has its own order, the best match first.
fn columns(asked: &ListQuery) -> Vec<Column> {
    let now = asked.q.is_empty().then(|| asked.sort());
    let column = |label, sorted: &[(Sort, &'static str)]| {
        let at = sorted.iter().position(|(sort, _)| Some(*sort) == now);
        // The next order, if the column has two.
        let next = sorted.get(at.map_or(0, |at| (at + 1) % sorted.len().max(1)));
        Column {
            label,
            link: next.filter(|_| now.is_some()).map(|(sort, _)| asked.suffix(*sort, None)),
            sorted: at.and_then(|at| sorted.get(at)).map(|(_, direction)| *direction),
        }
    };
    vec![
        column("E-mail", &[(Sort::Email, "ascending")]),
        column("Name", &[(Sort::Name, "ascending")]),
        column("Providers", &[]),
        column("Created", &[(Sort::Newest, "descending"), (Sort::Oldest, "ascending")]),
        column("Last seen", &[(Sort::LastSeen, "descending")]),
        column("Status", &[]),
    ]
}

fn counted(exact: bool, number: u64) -> String {
    // Three digits are enough for an estimate.
    let unit = if exact { 1 } else { 10_u64.pow(number.max(1).ilog10().saturating_sub(2)) };
    let digits = (number / unit * unit).to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match (exact, number) {
        (true, 1) => "1 user".into(),
        (true, _) => format!("{grouped} users"),
        (false, _) => format!("about {grouped} users (an estimate)"),
    }
}

impl View for Users {
    const TEMPLATE: &'static str = "admin/users";
}

#[get("/users?<query..>")]
async fn list(
    staff: Staff,
    query: Parameters<'_>,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let (asked, pool) = (query.tidy(), db.pool());
    let providers = known(providers, db).await?;
    let filters = asked.filters(staff.member.time_zone.as_deref());
    let view = match (&filters, asked.q.as_str()) {
        (Err(NothingMatches), _) => Users::new(asked, providers, Vec::new(), counted(true, 0)),
        (Ok(filters), "") => {
            // An invalid cursor starts from the beginning.
            let start = query.at.and_then(Cursor::decode);
            let page = store::page(pool, filters, asked.sort(), start.as_ref(), PAGE).await?;
            let (shown, first) = (page.users.len() as u64, page.before.is_none());
            let count = if first && page.after.is_none() {
                counted(true, shown)
            } else {
                counted(false, retrying!(count::estimate(pool, filters))?.max(shown))
            };
            let view = Users::new(asked, providers, page.users, count);
            let [before, after] = [page.before, page.after].map(|cursor| cursor.as_ref().map(Cursor::encode));
            view.with_links(first, before, after)
        }
        (Ok(filters), text) => {
            let start = query.at.and_then(Position::decode);
            let found = search(pool, text, &providers, filters, start.as_ref(), PAGE).await?;
            let Found { users, after, remains } = found;
            let count = match (&start, &after) {
                (None, None) => counted(true, users.len() as u64),
                (None, Some(_)) => format!("more than {PAGE} users"),
                (Some(_), _) => "further users".into(),
            };
            let view = Users { remains, ..Users::new(asked, providers, users, count) };
            view.with_links(start.is_none(), None, after.as_ref().map(Position::encode))
        }
    };
    record(pool, &staff.member, &DataAccess::Users { search: &view.asked.searched() }, &origin.0).await?;
    Ok(Page::new(&staff, &view))
}

#[post("/users.csv?<query..>", data = "<form>")]
async fn file(
    staff: ExportingStaff,
    query: Parameters<'_>,
    form: StaffForm,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Csv, Failure> {
    let (asked, member, reason) = (query.tidy(), staff.0.member, form.reason()?);
    let zone = member.time_zone.as_deref();
    let rows = export::Export::new(&asked, zone, known(providers, db).await?, db.pool().clone());
    let look = DataAccess::UsersExport { search: &asked.searched(), reason: &reason };
    record(db.pool(), &member, &look, &origin.0).await?;
    Ok(Csv::begin(rows, &member, db.pool()).await?)
}

/// Returns the names of all configured and former providers.
pub(super) async fn known(configured: &State<Providers>, db: &Db) -> Result<Vec<String>, Error> {
    let mut names = configured.names();
    names.extend(retrying!(store::providers(db.pool()))?);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_estimates_say_what_they_are() {
        let exact = [(0, "0 users"), (1, "1 user"), (50, "50 users"), (1234, "1,234 users")];
        for (number, text) in exact {
            assert_eq!(counted(true, number), text);
        }
        for (number, text) in [(51, "51"), (1234, "1,230"), (999_999, "999,000"), (1_000_000, "1,000,000")] {
            assert_eq!(counted(false, number), format!("about {text} users (an estimate)"));
        }
    }
}
