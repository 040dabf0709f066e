//! The list of users, searched and filtered, on pages or as a file.

mod export;
mod query;

use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::{Route, State as Managed, get, post, routes};
use serde::Serialize;
use strum::VariantArray;
use url::form_urlencoded;
use uuid::Uuid;

use crate::admin::lists::events::{Filter, page};
use crate::admin::lists::users::search::{Found, Position, search, suggest};
use crate::admin::lists::users::{
    self as listing, Cursor, Filters, ListedUser, Sort, Status, count,
};
use crate::admin::pages::audit::network;
use crate::admin::pages::csv::Csv;
use crate::admin::pages::event_view::EventView;
use crate::admin::pages::fields::{Chip, NothingMatches, Tab};
use crate::admin::pages::users::query::ListQuery;
use crate::admin::pages::{Answer, ExportingStaff, Failure, Page, Staff, StaffForm, record};
use crate::database::{Database, Error};
use crate::domain::Email;
use crate::events::{DataAccess, EventKind};
use crate::provider::Providers;
use crate::web::Db;
use crate::web::guard::ClientOrigin;

const PAGE: usize = 50;
/// The number of events of a request that a search shows.
const EVENTS: usize = 10;

pub(super) fn routes() -> Vec<Route> {
    routes![list, file]
}

#[derive(Serialize)]
struct Column {
    label: &'static str,
    /// The end of the list's URL in the order of this column, or in its other direction.
    link: Option<String>,
    /// The current direction, as in `aria-sort`.
    sorted: Option<&'static str>,
}

#[derive(Default, Serialize)]
pub(super) struct Users {
    asked: ListQuery,
    chips: Vec<Chip>,
    providers: Vec<String>,
    statuses: Vec<Tab>,
    /// The fields beside the end of the creation, for the jump to a day.
    kept: Vec<(&'static str, String)>,
    columns: Vec<Column>,
    people: Vec<ListedUser>,
    count: String,
    /// True if the database gave the list up because it took too long.
    slow: bool,
    /// The positions of the first and the last user on the page, if the order has them.
    range: Option<(usize, usize)>,
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
    /// The text without its mistakes of typing, if no user matches it as it is.
    suggestion: Option<String>,
    /// The events of the request or of the receipt whose number the text is.
    events: Vec<EventView>,
}

impl Users {
    fn new(asked: ListQuery, providers: Vec<String>) -> Self {
        let all = Tab {
            value: "",
            label: "All",
            link: asked.without("status"),
        };
        let states = Status::VARIANTS.iter().map(|status| Tab {
            value: status.into(),
            label: status_label(*status),
            link: asked.with_status(status.into()),
        });
        Self {
            chips: chips(&asked),
            providers,
            statuses: std::iter::once(all).chain(states).collect(),
            kept: asked.kept(),
            columns: columns(&asked),
            file: asked.suffix(asked.sort(), None),
            claimed: Email::parse(asked.q()).map(|email| email.folded().to_owned()),
            asked,
            ..Self::default()
        }
    }

    /// Fills in a page of the list.
    async fn list(
        &mut self,
        database: &Database,
        filters: &Filters,
        at: Option<&str>,
        number: Option<usize>,
    ) -> Result<(), Error> {
        // An invalid cursor starts from the beginning.
        let start = at.and_then(Cursor::decode);
        let page =
            listing::page(database, filters, self.asked.sort(), start.as_ref(), PAGE).await?;
        let shown = page.users.len();
        let first = page.before.is_none() && (shown > 0 || start.is_none());
        self.count = if first && page.after.is_none() {
            counted(true, shown as u64)
        } else {
            counted(
                false,
                database
                    .run(|_| count::estimate(database, filters))
                    .await?
                    .max(shown as u64),
            )
        };
        self.people = page.users;
        let [before, after] =
            [page.before, page.after].map(|cursor| cursor.as_ref().map(Cursor::encode));
        self.link(first, before, after);
        if let Some(number) = if first { Some(1) } else { number } {
            let place = |at: String, number: usize| format!("{at}&number={number}");
            self.range = (shown > 0).then(|| (number, number.saturating_add(shown - 1)));
            self.after = self
                .after
                .take()
                .map(|at| place(at, number.saturating_add(shown)));
            if number > PAGE {
                self.before = self.before.take().map(|at| place(at, number - PAGE));
            }
        }
        Ok(())
    }

    /// Fills in the results of a search. Returns the only user whom the text names.
    async fn search(
        &mut self,
        database: &Database,
        filters: &Filters,
        at: Option<&str>,
    ) -> Result<Option<Uuid>, Error> {
        let text = self.asked.q().to_owned();
        let start = at.and_then(Position::decode);
        let found = search(
            database,
            &text,
            &self.providers,
            filters,
            start.as_ref(),
            PAGE,
        )
        .await?;
        let Found {
            users,
            mut after,
            remains,
            certain,
        } = found;
        if let ([user], true, true) = (&users[..], certain, filters.is_empty()) {
            return Ok(Some(user.id));
        }
        let nobody = users.is_empty() && start.is_none();
        (self.people, self.remains) = (users, remains);
        if nobody {
            let near = database.run(|_| suggest(database, &text)).await?;
            self.suggestion = near.filter(|near| *near != text.to_ascii_lowercase());
            if let Some(text) = &self.suggestion {
                (self.people, after) = (
                    search(database, text, &self.providers, filters, None, PAGE)
                        .await?
                        .users,
                    None,
                );
            }
            let request = Filter {
                request: Some(text),
                ..Filter::default()
            };
            let (events, _) = page(database, &request, None, EVENTS).await?;
            self.events = events.into_iter().map(EventView::from).collect();
        }
        self.count = match (&start, &after) {
            (None, None) => counted(true, self.people.len() as u64),
            (None, Some(_)) => format!("more than {PAGE} users"),
            (Some(_), _) => "further users".into(),
        };
        self.link(start.is_none(), None, after.as_ref().map(Position::encode));
        Ok(None)
    }

    fn link(&mut self, first: bool, before: Option<String>, after: Option<String>) {
        let address = |at: Option<&str>| self.asked.suffix(self.asked.sort(), at);
        let first = (!first).then(|| address(None));
        let before = before.map(|at| address(Some(&at)));
        let after = after.map(|at| address(Some(&at)));
        (self.first, self.before, self.after) = (first, before, after);
    }
}

fn chips(asked: &ListQuery) -> Vec<Chip> {
    let chip = |(name, value): (&str, &str)| {
        let label = match name {
            "provider" => format!("Signs in with: {value}"),
            "created_from" => format!("Created from: {value}"),
            "created_to" => format!("Created to: {value}"),
            "seen_from" => format!("Last seen from: {value}"),
            _ => format!("Last seen to: {value}"),
        };
        Chip {
            label,
            href: format!("/admin/users{}", asked.without(name)),
        }
    };
    asked
        .filled()
        .filter(|(name, _)| *name != "status")
        .map(chip)
        .collect()
}

const fn status_label(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Disabled => "disabled",
        Status::Suspended => "cannot sign in",
        Status::Unverified => "e-mail not verified",
        Status::Held => "identity held",
    }
}

/// Returns the columns. A search has its own order, the best match first.
fn columns(asked: &ListQuery) -> Vec<Column> {
    let now = asked.q().is_empty().then(|| asked.sort());
    let column = |label, sorted: &[(Sort, &'static str)]| {
        let at = sorted.iter().position(|(sort, _)| Some(*sort) == now);
        // The next order, if the column has two.
        let next = sorted.get(at.map_or(0, |at| (at + 1) % sorted.len().max(1)));
        Column {
            label,
            link: next
                .filter(|_| now.is_some())
                .map(|(sort, _)| asked.suffix(*sort, None)),
            sorted: at
                .and_then(|at| sorted.get(at))
                .map(|(_, direction)| *direction),
        }
    };
    vec![
        column(
            "Name",
            &[
                (Sort::Name, "ascending"),
                (Sort::NameBackwards, "descending"),
            ],
        ),
        column(
            "E-mail",
            &[
                (Sort::Email, "ascending"),
                (Sort::EmailBackwards, "descending"),
            ],
        ),
        column("Signs in with", &[]),
        column(
            "Created",
            &[(Sort::Newest, "descending"), (Sort::Oldest, "ascending")],
        ),
        column("Last seen", &[(Sort::LastSeen, "descending")]),
        column("State", &[]),
    ]
}

fn counted(exact: bool, number: u64) -> String {
    // Three digits are enough for an estimate.
    let unit = if exact {
        1
    } else {
        10_u64.pow(number.max(1).ilog10().saturating_sub(2))
    };
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

/// Shows the list, or leads to the page of the only user whom the text names, or to the audit of an
/// IP address. `at` is the cursor at which the page begins, and `number` the position of its first
/// user, as the link to the page says.
#[get("/users?<at>&<number>")]
async fn list(
    staff: Staff,
    at: Option<&str>,
    number: Option<usize>,
    uri: &Origin<'_>,
    providers: &Managed<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let asked = ListQuery::read(uri);
    if network(asked.q()).is_some() {
        let query: String = form_urlencoded::byte_serialize(asked.q().as_bytes()).collect();
        return Ok(Answer::Left(Redirect::to(format!(
            "/admin/audit?ip={query}"
        ))));
    }
    let mut view = Users::new(asked, known(providers, db).await?);
    let read = match view.asked.filters(staff.member.time_zone.as_deref()) {
        Err(NothingMatches) => Ok(None),
        Ok(filters) if view.asked.q().is_empty() => {
            view.list(db, &filters, at, number).await.map(|()| None)
        }
        Ok(filters) => view.search(db, &filters, at).await,
    };
    let only = match read {
        Err(error) if error.is_timeout() => {
            tracing::warn!(%error, "a list of users took too long");
            view.slow = true;
            None
        }
        read => read?,
    };
    record(
        db,
        &staff.member,
        DataAccess::list(EventKind::UsersViewed, &view.asked.0.searched()),
        &origin.0,
    )
    .await?;
    Ok(match only {
        Some(id) => Answer::Left(Redirect::to(format!("/admin/users/{id}"))),
        None => Answer::Right(Page::new(&staff, "admin/users", &view)),
    })
}

#[post("/users.csv", data = "<form>")]
async fn file(
    staff: ExportingStaff,
    uri: &Origin<'_>,
    form: StaffForm,
    providers: &Managed<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Csv, Failure> {
    let asked = ListQuery::read(uri);
    let member = staff.0.member;
    let reason = form.reason()?;
    let zone = member.time_zone.as_deref();
    let rows = export::Export::new(
        &asked,
        zone,
        known(providers, db).await?,
        Database::clone(db),
    );
    let search = asked.0.searched();
    let access = DataAccess {
        reason: Some(&reason),
        ..DataAccess::list(EventKind::UsersExported, &search)
    };
    record(db, &member, access, &origin.0).await?;
    Ok(Csv::begin(rows, &member, db).await?)
}

pub(in crate::admin) async fn known(
    configured: &Managed<Providers>,
    db: &Db,
) -> Result<Vec<String>, Error> {
    let mut names = configured.names();
    names.extend(db.run(|_| listing::providers(db)).await?);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_estimates_say_what_they_are() {
        let exact = [
            (0, "0 users"),
            (1, "1 user"),
            (50, "50 users"),
            (1234, "1,234 users"),
        ];
        for (number, text) in exact {
            assert_eq!(counted(true, number), text);
        }
        for (number, text) in [
            (51, "51"),
            (1234, "1,230"),
            (999_999, "999,000"),
            (1_000_000, "1,000,000"),
        ] {
            assert_eq!(
                counted(false, number),
                format!("about {text} users (an estimate)")
            );
        }
    }
}
