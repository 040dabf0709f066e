//! `POST /api/v1/auth/refresh`: a refresh token for the next credential.

use rocket::{Route, State, post, routes};

use super::token_response::TokenResponse;
use crate::clock;
use crate::config;
use crate::session::Issuer;
use crate::session::refresh::refresh as exchange;
use crate::web::database::Db;
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::{ClientOrigin, JsonBody, RateLimited};
use crate::web::problem::{Kind, Problem};

pub(super) fn routes() -> Vec<Route> {
    routes![refresh]
}

#[post("/auth/refresh", data = "<body>")]
async fn refresh(
    _limit: RateLimited<Refresh>,
    body: JsonBody,
    db: &Db,
    issuer: &State<Issuer>,
    lifetimes: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<TokenResponse, Problem> {
    let missing = || Problem::new(Kind::InvalidRequest, "`refresh_token` must be a string");
    let token = body.0.str("refresh_token").ok_or_else(missing)?;
    let refreshed = exchange(db.pool(), issuer, **lifetimes, token, &origin.0, clock::now()).await?;
    Ok(TokenResponse::refreshed(&refreshed, **lifetimes))
}
