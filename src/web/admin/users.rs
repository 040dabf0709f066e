//! Users: who there is, one person's record, and what staff can do about it.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, State, get, post, routes};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::audit::Happened;
use super::failure::Failure;
use super::page::Page;
use crate::domain::staff::Role;
use crate::provider::Providers;
use crate::session::look_after::{Action, act};
use crate::store::directory::{self, ListedUser};
use crate::store::{identities, sessions};
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, Staff, StaffForm};
use crate::web::wire_time::rfc3339;

/// Users on a page.
const PAGE: i64 = 50;
/// Events on a person's page.
const EVENTS: i64 = 100;
/// Longest text that is searched for, in characters.
const MAX_QUERY: usize = 254;

pub(super) fn routes() -> Vec<Route> {
    routes![home, list, show, change]
}

#[get("/")]
fn home() -> Redirect {
    Redirect::to("/admin/users")
}

#[derive(Serialize)]
struct Person {
    id: Uuid,
    email: Option<String>,
    email_verified: bool,
    name: Option<String>,
    created_at: String,
    disabled_at: Option<String>,
    providers: Vec<String>,
}

impl From<ListedUser> for Person {
    fn from(user: ListedUser) -> Self {
        Self {
            id: user.id,
            email: user.email,
            email_verified: user.email_verified,
            name: user.name,
            created_at: rfc3339(user.created_at),
            disabled_at: user.disabled_at.map(rfc3339),
            providers: user.providers,
        }
    }
}

#[get("/users?<q>&<before>")]
async fn list(
    staff: Staff,
    q: Option<&str>,
    before: Option<&str>,
    providers: &State<Providers>,
    db: &Db,
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
    let more = users.len() > usize::try_from(PAGE).unwrap_or(usize::MAX);
    users.truncate(usize::try_from(PAGE).unwrap_or(usize::MAX));
    let next = users.last().filter(|_| more && query.is_empty()).map(|user| user.id);
    let people: Vec<Person> = users.into_iter().map(Person::from).collect();
    let content = json!({ "query": query, "people": people, "next": next, "more": more });
    Ok(Page::new("admin/users.html", &staff.member, &staff.csrf, content))
}

#[get("/users/<id>?<done>")]
async fn show(staff: Staff, id: &str, done: Option<&str>, db: &Db) -> Result<Page, Failure> {
    let id = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let user = directory::user(db.pool(), id).await?.ok_or(Status::NotFound)?;
    let identities = identities::of_user(db.pool(), id).await?;
    let sessions = sessions::of_user(db.pool(), id).await?;
    let events = directory::events_of(db.pool(), id, user.email.as_deref(), EVENTS).await?;
    let identities: Vec<_> = identities
        .into_iter()
        .map(|row| {
            json!({ "provider": row.provider, "subject": row.subject, "email": row.email,
                           "created_at": rfc3339(row.created_at) })
        })
        .collect();
    let sessions: Vec<_> = sessions
        .into_iter()
        .map(|row| {
            json!({ "provider": row.provider, "ip": row.ip, "user_agent": row.user_agent,
                           "device_name": row.device_name, "device_platform": row.device_platform,
                           "created_at": rfc3339(row.created_at), "last_used_at": rfc3339(row.last_used_at) })
        })
        .collect();
    let content = json!({
        "person": Person::from(user), "identities": identities, "sessions": sessions,
        "events": events.into_iter().map(Happened::from).collect::<Vec<_>>(),
        "done": done.and_then(Action::from_name).map(Action::done),
        "is_admin": staff.member.role == Role::Admin,
    });
    Ok(Page::new("admin/user.html", &staff.member, &staff.csrf, content))
}

#[post("/users/<id>/<action>", data = "<form>")]
async fn change(
    staff: Staff,
    id: &str,
    action: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let id = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let action = Action::from_name(action).ok_or(Status::NotFound)?;
    if staff.member.role < action.role() {
        return Err(Status::Forbidden.into());
    }
    let reason = form.get("reason").ok_or(Status::BadRequest)?;
    if !act(db.pool(), id, action, &staff.member.email, reason, &origin.0).await? {
        return Err(Status::NotFound.into());
    }
    Ok(Redirect::to(format!("/admin/users/{id}?done={}", action.name())))
}
