//! What staff do about a person.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, post, routes};
use uuid::Uuid;

use super::change;
use super::failure::Failure;
use crate::session::look_after::{self, Action, Outcome};
use crate::store::staff_access::By;
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, Staff, StaffForm};

pub(super) fn routes() -> Vec<Route> {
    routes![act]
}

/// What there is to say of an action of that name when it is done.
pub(super) fn done(name: &str) -> Option<&'static str> {
    Action::from_name(name).map(Action::done).or_else(|| change::done(name))
}

// After the changes that have pages of their own.
#[post("/users/<id>/<action>", data = "<form>", rank = 1)]
async fn act(
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
    let reason = form.reason()?;
    let by = By { actor: &staff.member.email, reason: Some(&reason), origin: &origin.0 };
    match look_after::act(db.pool(), id, action, by).await? {
        Outcome::Done => Ok(Redirect::to(format!("/admin/users/{id}?done={}", action.name()))),
        Outcome::NotFound => Err(Status::NotFound.into()),
        Outcome::Changed => Err(Failure::Conflict("The user has changed. Look again.")),
        Outcome::Refused(why) => Err(Failure::Conflict(change::refused(why))),
    }
}
