//! `/api/v1/me`: the signed-in user.

use rocket::http::Status;
use rocket::{Route, delete, get, routes};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::view::{Identity, Json, User};
use crate::service::account;
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
pub(super) struct ApiDoc;

/// A user with identities.
#[derive(Serialize, ToSchema)]
struct Me {
    #[serde(flatten)]
    user: User,
    /// The user's identities, oldest first.
    identities: Vec<Identity>,
}

/// Get the signed-in user
///
/// Returns the user and the user's identities.
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
    let identities = identities.into_iter().map(|row| Identity::new(row, signed_in.identity)).collect();
    Ok(Json(Status::Ok, Me { user: signed_in.user.into(), identities }))
}

/// Delete the account
///
/// Deletes the user with all identities and sessions. This cannot be undone, so let the user confirm it. The
/// session must have been opened within the last ten minutes, or the body must contain a new `id_token`. A later
/// sign-in with one of the identities creates a new user.
#[utoipa::path(
    delete,
    path = "/me",
    operation_id = "deleteMe",
    tag = "Account",
    security(("access_token" = [])),
    request_body(content = RemovalRequest, description = "Required only if the session was opened more than ten minutes ago.",
                 example = json!(examples::reauthentication())),
    responses(
        (status = 204, description = "The user was deleted, and all sessions have ended."),
        Problems<Reauthenticated>,
    ),
)]
#[delete("/me", data = "<who>")]
async fn delete_me(who: Reauthenticated, db: &Db, origin: ClientOrigin) -> Result<Status, Problem> {
    let Reauthenticated(signed_in) = who;
    let deleted = account::delete(db.pool(), signed_in.user.id, &origin.0).await?;
    if deleted { Ok(Status::NoContent) } else { Err(bearer::over(db, signed_in.token).await) }
}
