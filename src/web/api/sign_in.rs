//! `POST /api/v1/auth/oauth/<provider>`: an identity provider's token for a credential of ours.

use rocket::{Route, State, post, routes};

use super::token_response::TokenResponse;
use crate::config;
use crate::session::Issuer;
use crate::session::sign_in::{Attempt, sign_in as open_session};
use crate::web::database::Db;
use crate::web::guard::rate_limited::SignIn;
use crate::web::guard::{ClientOrigin, RateLimited, VerifiedIdentity};
use crate::web::problem::Problem;

pub(super) fn routes() -> Vec<Route> {
    routes![sign_in]
}

#[post("/auth/oauth/<_>", data = "<identity>")]
async fn sign_in(
    _limit: RateLimited<SignIn>,
    identity: VerifiedIdentity<'_>,
    db: &Db,
    issuer: &State<Issuer>,
    lifetimes: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<TokenResponse, Problem> {
    let attempt = Attempt {
        provider: identity.provider,
        claims: &identity.claims,
        create: identity.create,
        device_name: identity.device_name.as_deref(),
        device_platform: identity.device_platform.as_deref(),
        origin: &origin.0,
        now: identity.now,
    };
    let signed_in = open_session(db.pool(), issuer, **lifetimes, &attempt).await?;
    Ok(TokenResponse::signed_in(signed_in, **lifetimes))
}
