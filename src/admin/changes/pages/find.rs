//! The search for the other user of a merge or a move.

use rocket::http::Status;
use serde::Serialize;
use uuid::Uuid;

use super::{Visit, path, words};
use crate::admin::naming::called;
use crate::admin::person::store;
use crate::admin::users::store::search::search;
use crate::admin::users::store::{Filters, ListedUser};
use crate::admin::{Failure, Page, record};
use crate::domain::{Role, printable};
use crate::provider::Providers;
use crate::store::{Look, identities, retrying};

const PAGE: usize = 10;
/// The longest search text, in characters.
const MAX_QUERY: usize = 254;

#[derive(Serialize)]
struct Match {
    #[serde(flatten)]
    user: ListedUser,
    /// The URLs of previews, with what they do.
    links: Vec<(String, String)>,
}

#[derive(Serialize)]
pub(in crate::admin) struct Find {
    title: &'static str,
    lead: String,
    /// The user on whose page the change began.
    person: Uuid,
    name: String,
    path: String,
    query: String,
    matches: Vec<Match>,
    more: bool,
}

/// Shows the search for whom to merge with the user, or to whom to move their identity `moved`.
pub(super) async fn find(
    visit: &Visit<'_>,
    providers: &Providers,
    user: Uuid,
    moved: Option<Uuid>,
    q: Option<&str>,
) -> Result<Page, Failure> {
    let (pool, member) = (visit.db.pool(), &visit.staff.member);
    if member.role != Role::Admin {
        return Err(Status::Forbidden.into());
    }
    let name_of = |user: &ListedUser| called(user.id, user.email.as_deref(), user.name.as_deref());
    let name = name_of(&retrying!(store::user(pool, user))?.ok_or(Status::NotFound)?.user);
    let (title, path, lead) = match moved {
        None => (words::MERGE, path(user, None, None, "merge"), words::MERGE_LEAD.to_owned()),
        Some(moved) => {
            let identities = retrying!(identities::of_user(pool, user))?;
            let row = identities.into_iter().find(|row| row.id == moved).ok_or(Status::NotFound)?;
            let identity = words::called(&row.provider, &row.subject, row.email.as_deref());
            (words::MOVE, path(user, Some(moved), None, "move"), words::move_lead(&identity, &name))
        }
    };
    record(pool, member, Look::person(user), &visit.origin.0).await?;
    let query = printable(q.unwrap_or_default(), MAX_QUERY).trim().to_owned();
    let (mut users, mut more) = (Vec::new(), false);
    if !query.is_empty() {
        // One more, since the user may be among the results.
        let filters = Filters::default();
        let found = search(pool, &query, &providers.names(), &filters, None, PAGE + 1).await?;
        record(pool, member, Look::list("users_viewed", &[("q", &query)]), &visit.origin.0).await?;
        users = found.users;
        users.retain(|other| other.id != user);
        more = found.after.is_some() || users.len() > PAGE;
        users.truncate(PAGE);
    }
    let matches = users.into_iter().map(|other| {
        let links = match moved {
            None => vec![
                (format!("{path}?into={}", other.id), format!("Keep {} …", name_of(&other))),
                (
                    format!("/admin/users/{}/merge?into={user}&back={user}", other.id),
                    format!("Keep {name} …"),
                ),
            ],
            Some(_) => vec![(format!("{path}?to={}", other.id), "Move it here …".to_owned())],
        };
        Match { user: other, links }
    });
    let matches = matches.collect();
    Ok(Page::new(
        &visit.staff,
        "admin/find",
        &Find { title, lead, person: user, name, path, query, matches, more },
    ))
}
