//! The search for the other user of a merge or a move.

use rocket::http::Status;
use serde::Serialize;
use uuid::Uuid;

use crate::accounts::identities;
use crate::accounts::identities::IdentityRow;
use crate::admin::changes::words::{self, Line};
use crate::admin::lists::person;
use crate::admin::lists::users::search::search;
use crate::admin::lists::users::{Filters, ListedUser};
use crate::admin::pages::changes::Visit;
use crate::admin::pages::{Failure, Page, record};
use crate::domain::{Role, printable};
use crate::events::{DataAccess, EventKind};
use crate::provider::Providers;

const PAGE: usize = 10;
/// The longest search text, in characters.
const MAX_QUERY: usize = 254;

#[derive(Serialize)]
struct Find<'r> {
    title: &'static str,
    /// The user on whose page the change began, and the identity to move.
    person: Named,
    /// What the search is for.
    purpose: Line,
    identity: Option<IdentityRow>,
    path: &'r str,
    query: String,
    matches: Vec<Named>,
    more: bool,
}

/// A user, and the name of the user within a sentence.
#[derive(Serialize)]
struct Named {
    called: Line,
    #[serde(flatten)]
    user: ListedUser,
}

impl From<ListedUser> for Named {
    fn from(user: ListedUser) -> Self {
        Self {
            called: words::listed(&user).into(),
            user,
        }
    }
}

/// Shows the search for whom to merge with the user, or to whom to move their identity `moved`.
pub(super) async fn find(
    visit: &Visit<'_>,
    providers: &Providers,
    user: Uuid,
    moved: Option<Uuid>,
) -> Result<Page, Failure> {
    let db = visit.db;
    let member = &visit.staff.member;
    if member.role != Role::Admin {
        return Err(Status::Forbidden.into());
    }
    let person = db
        .run(|_| person::user(db, user))
        .await?
        .ok_or(Status::NotFound)?
        .user;
    let (title, identity) = match moved {
        None => (words::MERGE, None),
        Some(moved) => {
            let identities = db.run(|_| identities::of_user(db, user)).await?;
            let row = identities
                .into_iter()
                .find(|row| row.id == moved)
                .ok_or(Status::NotFound)?;
            (words::MOVE, Some(row))
        }
    };
    record(db, member, DataAccess::person(user), &visit.origin.0).await?;
    let query = printable(visit.form.get("q").unwrap_or_default(), MAX_QUERY)
        .trim()
        .to_owned();
    let mut matches = Vec::new();
    let mut more = false;
    if !query.is_empty() {
        // One more, since the user may be among the results.
        let filters = Filters::default();
        let found = search(db, &query, &providers.names(), &filters, None, PAGE + 1).await?;
        record(
            db,
            member,
            DataAccess::list(EventKind::UsersViewed, &[("q", &query)]),
            &visit.origin.0,
        )
        .await?;
        matches = found.users;
        matches.retain(|other| other.id != user);
        more = found.after.is_some() || matches.len() > PAGE;
        matches.truncate(PAGE);
    }
    let view = Find {
        title,
        purpose: words::search(identity.as_ref(), &person),
        person: person.into(),
        identity,
        path: visit.path,
        query,
        matches: matches.into_iter().map(Named::from).collect(),
        more,
    };
    Ok(Page::new(&visit.staff, "admin/find", &view))
}
