//! `/api/v1/me/identities`: the identities with which a user signs in.

use rocket::http::Status;
use rocket::{delete, get, post};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::Identity;
use crate::accounts::account;
use crate::accounts::account::{Linked, Unlinked};
use crate::domain::Reason;
use crate::web::guard::rate_limited::SignIn;
use crate::web::guard::reauthenticated::{LinkRequest, RemovalRequest};
use crate::web::guard::{
    ClientOrigin, NewIdentity, RateLimited, Reauthenticated, SignedIn, bearer,
};
use crate::web::openapi::examples;
use crate::web::{Db, ErrorCode, Json, Problem, Problems, failures, resource};

resource!("Identities": list_identities, link_identity, unlink_identity);

failures!(LinkFailures:
    ErrorCode::IdentityAlreadyLinked,
    ErrorCode::InvalidAccessToken,
    ErrorCode::Refused(Reason::IdentitySuspended),
    ErrorCode::Refused(Reason::TooManyIdentities),
);

failures!(UnlinkFailures: ErrorCode::NotFound, ErrorCode::LastIdentity);

/// A user's identities.
#[derive(Serialize, ToSchema)]
struct Identities {
    /// The identities, oldest first.
    identities: Vec<Identity>,
}

/// List the user's identities
#[utoipa::path(
    security(("access_token" = [])),
    responses(
        (status = 200, description = "All identities, oldest first.", body = Identities),
        Problems<SignedIn>,
    ),
)]
#[get("/me/identities")]
fn list_identities(signed_in: SignedIn) -> Json<Identities> {
    let SignedIn {
        identities,
        identity,
        ..
    } = signed_in;
    let identities = identities
        .into_iter()
        .map(|row| Identity::new(row, identity))
        .collect();
    Json(Status::Ok, Identities { identities })
}

/// Link another identity
///
/// Links an identity, which can then sign in as this user. Its e-mail address may differ from the
/// user's, need not be verified, and does not change the user's address. An identity of another
/// user is refused. The session must have been opened within the last ten minutes, or the body must
/// contain a new `id_token` of one of the user's identities.
#[utoipa::path(
    // Both paths use one parameter name: OpenAPI (3.1, "Paths Object") permits no two paths that
    // differ in it alone.
    path = "/me/identities/{identity}",
    security(("access_token" = [])),
    params(("identity" = String, Path, example = "google",
            description = "The provider's name as in the path of the sign-in, not the id of an identity.")),
    request_body(content = LinkRequest, description = "The `id_token` that the provider's SDK has just returned.", examples(
        ("plain" = (summary = "A token", value = json!(examples::id_token()))),
        ("nonce" = (summary = "A token with a nonce", value = json!(examples::id_token_and_nonce()))),
        ("reauthentication" = (summary = "In an older session", value = json!(examples::whole_link()))),
    )),
    responses(
        (status = 201, description = "The identity was linked.", body = Identity),
        (status = 200, description = "The identity was already linked to this user; nothing has changed.", body = Identity),
        Problems<(NewIdentity<'_>, LinkFailures)>,
    ),
)]
#[post("/me/identities/<_>", data = "<new>")]
async fn link_identity(
    _limit: RateLimited<SignIn>,
    new: NewIdentity<'_>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Json<Identity>, Problem> {
    let NewIdentity {
        signed_in,
        identity,
    } = new;
    let user = signed_in.user.id;
    let session = signed_in.token.session;
    let linked = account::link(
        db,
        user,
        session,
        identity.provider,
        &identity.claims,
        &origin.0,
    )
    .await?;
    if let Linked::New(_) | Linked::Before(_) = linked {
        identity.keep_code(db).await?;
    }
    match linked {
        Linked::New(row) => Ok(Json(
            Status::Created,
            Identity::new(row, signed_in.identity),
        )),
        Linked::Before(row) => Ok(Json(Status::Ok, Identity::new(row, signed_in.identity))),
        Linked::Taken => Err(Problem::new(
            ErrorCode::IdentityAlreadyLinked,
            "the identity is linked to another user",
        )),
        Linked::Suspended => Err(Reason::IdentitySuspended.into()),
        Linked::Outdated => Err(Problem::outdated().beside_a_bearer()),
        Linked::TooMany => Err(Problem::new(
            ErrorCode::Refused(Reason::TooManyIdentities),
            "the user has as many identities as a user may have",
        )),
        Linked::NoUser => Err(bearer::over(db, signed_in.token).await),
    }
}

/// Unlink an identity
///
/// Unlinks an identity and ends the sessions that were opened with it, which may include the
/// current one. An identity that is suspended cannot be unlinked unless its account is gone, nor
/// can the last with which the user can sign in. The session must have been opened within the last
/// ten minutes, or the body must contain a new `id_token`.
#[utoipa::path(
    path = "/me/identities/{identity}",
    security(("access_token" = [])),
    params(("identity" = Uuid, Path, description = "The identity's `id`.")),
    request_body(content = RemovalRequest, description = "Required only if the session was opened more than ten minutes ago."),
    responses(
        (status = 204, description = "The identity was unlinked, and its sessions have ended."),
        Problems<(Reauthenticated, UnlinkFailures)>,
    ),
)]
#[delete("/me/identities/<id>", data = "<who>")]
async fn unlink_identity(
    id: &str,
    who: Reauthenticated,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Status, Problem> {
    let signed_in = who.0;
    let not_found = || Problem::new(ErrorCode::NotFound, "the user has no identity with this id");
    let identity = Uuid::parse_str(id).map_err(|_| not_found())?;
    let user = signed_in.user.id;
    let session = signed_in.token.session;
    match account::unlink(db, user, session, identity, &origin.0).await? {
        Unlinked::Done => Ok(Status::NoContent),
        Unlinked::NotFound => Err(not_found()),
        Unlinked::Suspended => Err(Problem::new(
            ErrorCode::Refused(Reason::IdentitySuspended),
            "a suspended identity cannot be unlinked, because whoever has its account could be linked again",
        )),
        Unlinked::Last => Err(Problem::new(
            ErrorCode::LastIdentity,
            "the last identity with which the user can sign in cannot be unlinked",
        )),
        Unlinked::Over { .. } | Unlinked::NotPermitted => {
            Err(bearer::over(db, signed_in.token).await)
        }
    }
}
