//! `/api/v1/me`: the signed-in user.

use rocket::http::Status;
use rocket::{delete, get, patch};
use serde::Serialize;
use utoipa::ToSchema;

use super::view::{Identity, UserWithClaims};
use crate::accounts::account;
use crate::accounts::account::Deletion;
use crate::domain::Reason;
use crate::domain::claims::display_name;
use crate::web::guard::json_body::only;
use crate::web::guard::reauthenticated::RemovalRequest;
use crate::web::guard::{
    ClientOrigin, JsonBody, Page, Reauthenticated, Renaming, SignedIn, bearer, verified_identity,
};
use crate::web::{Db, ErrorCode, Json, Problem, Problems, failures, resource};

resource!("Account": get_me, update_me, delete_me);

/// A user with identities.
#[derive(Serialize, ToSchema)]
struct Me {
    #[serde(flatten)]
    user: UserWithClaims,
    /// The user's identities, oldest first.
    identities: Vec<Identity>,
}

impl Me {
    fn new(
        SignedIn {
            user,
            claims,
            identities,
            identity,
            ..
        }: SignedIn,
    ) -> Json<Self> {
        let identities = identities
            .into_iter()
            .map(|row| Identity::new(row, identity))
            .collect();
        Json(
            Status::Ok,
            Self {
                user: UserWithClaims { user, claims },
                identities,
            },
        )
    }
}

/// A change of the user's own data.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "the route parses by hand, to report what is wrong"
)]
struct UpdateMeRequest {
    /// The name that the user wants to be shown under, which no provider overwrites. Control
    /// characters are removed. `null`, or a blank name, removes it: then the user has the
    /// providers' name again.
    #[schema(required = true, max_length = 200)]
    name: Option<String>,
}

/// Get the signed-in user
///
/// Returns the user and the user's identities.
#[utoipa::path(
    security(("access_token" = [])),
    responses(
        (status = 200, description = "The user.", body = Me),
        Problems<SignedIn>,
    ),
)]
#[get("/me")]
fn get_me(signed_in: SignedIn) -> Json<Me> {
    Me::new(signed_in)
}

/// Set the name to be shown
///
/// Sets the name that the user wants to be shown under. Providers no longer overwrite it. `null`
/// removes it. A user can change it ten times a minute.
#[utoipa::path(
    security(("access_token" = [])),
    request_body(content = UpdateMeRequest, description = "The name to be shown."),
    responses(
        (status = 200, description = "The user with that name.", body = Me),
        Problems<(Renaming, JsonBody)>,
    ),
)]
#[patch("/me", data = "<body>")]
async fn update_me(
    renaming: Renaming,
    body: JsonBody,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Json<Me>, Problem> {
    let name = body.read(|body| {
        only(body, &["name"], "the body")?;
        if !body.has("name") {
            return Err(Problem::malformed(
                "`name` is missing; `null` takes a name back",
            ));
        }
        Ok(verified_identity::name(body)?.and_then(display_name))
    })?;
    let Renaming(signed_in) = renaming;
    let user = signed_in.user.id;
    let session = signed_in.token.session;
    match account::set_name(db, user, session, name.as_deref(), &origin.0).await? {
        Some(user) => Ok(Me::new(SignedIn { user, ..signed_in })),
        None => Err(bearer::over(db, signed_in.token).await),
    }
}

failures!(DeletionFailures: ErrorCode::Refused(Reason::IdentitySuspended));

/// Delete the account
///
/// Deletes the user with all identities and sessions. This cannot be undone, so let the user
/// confirm it. The session must have been opened within the last ten minutes, or the body must
/// contain a new `id_token`. A later sign-in with one of the identities creates a new user. While
/// one of the user's accounts is reported hijacked, the user cannot be deleted.
#[utoipa::path(
    security(("access_token" = [])),
    request_body(content = RemovalRequest, description = "Required only if the session was opened more than ten minutes ago."),
    responses(
        (status = 204, description = "The user was deleted, and all sessions have ended."),
        Problems<(Reauthenticated, DeletionFailures)>,
    ),
)]
#[delete("/me", data = "<who>")]
async fn delete_me(
    who: Reauthenticated,
    db: &Db,
    page: Page<'_>,
    origin: ClientOrigin,
) -> Result<Status, Problem> {
    let Reauthenticated(signed_in) = who;
    match account::delete(db, signed_in.user.id, signed_in.token.session, &origin.0).await? {
        Deletion::Done(_) => {
            page.forget_session(signed_in.token.session);
            Ok(Status::NoContent)
        }
        Deletion::NotFound | Deletion::NotPermitted => Err(bearer::over(db, signed_in.token).await),
        Deletion::Hijacked => Err(Problem::new(
            ErrorCode::Refused(Reason::IdentitySuspended),
            "one of the user's accounts was reported hijacked; support has to look at it before the user can be deleted",
        )),
    }
}
