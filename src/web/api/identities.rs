//! `/api/v1/me/identities`: what the user signs in with.

use rocket::http::Status;
use rocket::{Route, delete, get, post, routes};
use serde::Serialize;
use uuid::Uuid;

use super::view::{Identity, Json};
use crate::session::account::{self, Linked, Unlinked};
use crate::store::identities;
use crate::web::database::Db;
use crate::web::guard::rate_limited::SignIn;
use crate::web::guard::{ClientOrigin, RateLimited, SignedIn, VerifiedIdentity};
use crate::web::problem::{Kind, Problem};

pub(super) fn routes() -> Vec<Route> {
    routes![list, link, unlink]
}

#[derive(Serialize)]
struct Identities {
    identities: Vec<Identity>,
}

#[get("/me/identities")]
async fn list(signed_in: SignedIn, db: &Db) -> Result<Json<Identities>, Problem> {
    let identities = identities::of_user(db.pool(), signed_in.user.id).await?;
    Ok(Json(Status::Ok, Identities { identities: identities.into_iter().map(Identity::from).collect() }))
}

/// 201 when the identity is new, 200 when it was this user's before.
#[post("/me/identities/<_>", data = "<identity>")]
async fn link(
    _limit: RateLimited<SignIn>,
    signed_in: SignedIn,
    identity: VerifiedIdentity<'_>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Json<Identity>, Problem> {
    let (user, session) = (signed_in.user.id, signed_in.token.session);
    let provider = &identity.provider.name;
    match account::link(db.pool(), user, session, provider, &identity.claims, &origin.0).await? {
        Linked::New(row) => Ok(Json(Status::Created, row.into())),
        Linked::Before(row) => Ok(Json(Status::Ok, row.into())),
        Linked::Taken => {
            Err(Problem::new(Kind::IdentityAlreadyLinked, "the identity is linked to another user"))
        }
        Linked::NoUser => Err(Problem::new(Kind::InvalidAccessToken, "the user is gone or disabled")),
    }
}

#[delete("/me/identities/<id>")]
async fn unlink(signed_in: SignedIn, id: &str, db: &Db, origin: ClientOrigin) -> Result<Status, Problem> {
    let not_found = || Problem::new(Kind::NotFound, "the user has no identity of this id");
    let identity = Uuid::parse_str(id).map_err(|_| not_found())?;
    let (user, session) = (signed_in.user.id, signed_in.token.session);
    match account::unlink(db.pool(), user, session, identity, &origin.0).await? {
        Unlinked::Done => Ok(Status::NoContent),
        Unlinked::NotFound => Err(not_found()),
        Unlinked::Last => Err(Problem::new(Kind::LastIdentity, "nothing would be left to sign in with")),
    }
}
