//! What staff do about a person.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, post, routes};
use uuid::Uuid;

use super::failure::Failure;
use crate::session::look_after::{Action, act};
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, Staff, StaffForm};

pub(super) fn routes() -> Vec<Route> {
    routes![change]
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
    let reason = form.reason()?;
    if !act(db.pool(), id, action, &staff.member.email, &reason, &origin.0).await? {
        return Err(Status::NotFound.into());
    }
    Ok(Redirect::to(format!("/admin/users/{id}?done={}", action.name())))
}
