//! Actions of staff on a user.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, post, routes};
use uuid::Uuid;

use super::changes::pages as change;
use super::failure::Failure;
use crate::admin::changes::{self, Action, Outcome};
use crate::admin::guard::{AdminStaff, Staff, StaffForm};
use crate::domain::actor::{Actor, By};
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

pub(super) fn routes() -> Vec<Route> {
    routes![disable, enable, end_sessions]
}

/// Returns the message to show after the action of this name.
pub(super) fn done(name: &str) -> Option<&'static str> {
    Action::from_name(name).map(Action::done).or_else(|| change::done(name))
}

#[post("/users/<id>/disable", data = "<form>")]
async fn disable(
    staff: AdminStaff,
    id: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    act(db, &staff.0, id, Action::Disable, &form, &origin).await
}

#[post("/users/<id>/enable", data = "<form>")]
async fn enable(
    staff: AdminStaff,
    id: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    act(db, &staff.0, id, Action::Enable, &form, &origin).await
}

#[post("/users/<id>/end-sessions", data = "<form>")]
async fn end_sessions(
    staff: Staff,
    id: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    act(db, &staff, id, Action::EndSessions, &form, &origin).await
}

async fn act(
    db: &Db,
    staff: &Staff,
    id: &str,
    action: Action,
    form: &StaffForm,
    origin: &ClientOrigin,
) -> Result<Redirect, Failure> {
    let id = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let reason = form.reason()?;
    let by = By { actor: Actor::Staff(&staff.member.email), reason: Some(&reason), origin: &origin.0 };
    match changes::act(db.pool(), id, action, by).await? {
        Outcome::Done => Ok(Redirect::to(format!("/admin/users/{id}?done={}", action.name()))),
        Outcome::NotFound => Err(Status::NotFound.into()),
        Outcome::NotPermitted => Err(Status::Forbidden.into()),
        Outcome::Changed => Err(Failure::Conflict("The user has changed. Look again.")),
        Outcome::Refused(why) => Err(Failure::Conflict(change::refused(why))),
    }
}
