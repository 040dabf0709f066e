//! `/api/v1/me`: the user who is signed in.

use rocket::http::Status;
use rocket::{Route, delete, get, routes};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::view::{Identity, Json, User};
use crate::session::account;
use crate::store::identities;
use crate::web::database::Db;
use crate::web::guard::reauthenticated::RemovalRequest;
use crate::web::guard::{ClientOrigin, Reauthenticated, SignedIn, bearer};
use crate::web::openapi::examples;
use crate::web::openapi::problems::Problems;
use crate::web::problem::Problem;

pub(super) fn routes() -> Vec<Route> {
    routes![me, delete_me]
}

#[derive(OpenApi)]
#[openapi(paths(me, delete_me))]
pub(super) struct Described;

/// A user with identities.
#[derive(Serialize, ToSchema)]
struct Me {
    #[serde(flatten)]
    user: User,
    /// The oldest first.
    identities: Vec<Identity>,
}

/// Who is signed in
///
/// The user as they are now, with everything that they sign in with.
#[utoipa::path(
    get,
    path = "/me",
    operation_id = "getMe",
    tag = "Account",
    security(("access_token" = [])),
    responses(
        (status = 200, description = "The user.", body = Me, example = json!(examples::me())),
        Problems<SignedIn>,
    ),
)]
#[get("/me")]
async fn me(signed_in: SignedIn, db: &Db) -> Result<Json<Me>, Problem> {
    let identities = identities::of_user(db.pool(), signed_in.user.id).await?;
    let identities = identities.into_iter().map(Identity::from).collect();
    Ok(Json(Status::Ok, Me { user: signed_in.user.into(), identities }))
}

/// Delete the account
///
/// Removes the person: user, identities and sessions. It cannot be undone: ask twice before. It takes a session that
/// was opened within ten minutes, or a fresh `id_token` in the body. Whoever signs in with one of the identities
/// afterwards is a new user.
#[utoipa::path(
    delete,
    path = "/me",
    operation_id = "deleteMe",
    tag = "Account",
    security(("access_token" = [])),
    request_body(content = RemovalRequest, description = "Needed only without a fresh session.",
                 example = json!(examples::reauthentication())),
    responses(
        (status = 204, description = "The account is gone, and every session with it."),
        Problems<Reauthenticated>,
    ),
)]
#[delete("/me", data = "<who>")]
async fn delete_me(who: Reauthenticated, db: &Db, origin: ClientOrigin) -> Result<Status, Problem> {
    let deleted = account::delete(db.pool(), who.0.user.id, &origin.0).await?;
    if deleted { Ok(Status::NoContent) } else { Err(bearer::ended()) }
}
