//! `/api/v1/me`: the user who is signed in.

use rocket::http::Status;
use rocket::{Route, delete, get, routes};
use serde::Serialize;

use super::view::{Identity, Json, User};
use crate::session::account;
use crate::store::identities;
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, SignedIn};
use crate::web::problem::Problem;

pub(super) fn routes() -> Vec<Route> {
    routes![me, delete_me]
}

/// A user with identities.
#[derive(Serialize)]
struct Me {
    #[serde(flatten)]
    user: User,
    identities: Vec<Identity>,
}

#[get("/me")]
async fn me(signed_in: SignedIn, db: &Db) -> Result<Json<Me>, Problem> {
    let identities = identities::of_user(db.pool(), signed_in.user.id).await?;
    let identities = identities.into_iter().map(Identity::from).collect();
    Ok(Json(Status::Ok, Me { user: signed_in.user.into(), identities }))
}

#[delete("/me")]
async fn delete_me(signed_in: SignedIn, db: &Db, origin: ClientOrigin) -> Result<Status, Problem> {
    account::delete(db.pool(), signed_in.user.id, &origin.0).await?;
    Ok(Status::NoContent)
}
