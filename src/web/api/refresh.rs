//! `POST /api/v1/auth/refresh`: a refresh token for the next credential.

use rocket::{Route, State, post, routes};
use utoipa::{OpenApi, ToSchema};

use super::token_response::{Credential, TokenResponse};
use crate::clock;
use crate::config;
use crate::session::refresh::refresh as exchange;
use crate::session::{Issuer, SharedStatements};
use crate::web::database::Db;
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::{ClientOrigin, JsonBody, RateLimited};
use crate::web::openapi::examples;
use crate::web::openapi::problems::{Fails, Problems};
use crate::web::problem::{Kind, Problem};

pub(super) fn routes() -> Vec<Route> {
    routes![refresh]
}

#[derive(OpenApi)]
#[openapi(paths(refresh))]
pub(super) struct Described;

/// A credential to renew.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `refresh` reads by hand")]
struct RefreshRequest {
    /// The one of the latest answer.
    refresh_token: String,
}

/// What a refresh can end with beside what its guards say.
enum Refused {}

impl Fails for Refused {
    fn kinds() -> impl Iterator<Item = Kind> {
        [Kind::InvalidRefreshToken].into_iter()
    }
}

/// Exchange a refresh token for the next credential
///
/// The token is used up, and the answer holds its successor: store that before anything else, and let one request
/// at a time refresh. When the answer gets lost, repeat the request with the same token: within 30 seconds the answer is
/// the same refresh token, and later, for a day unless the operator says otherwise, another one. Any other use of a token
/// that is used up ends the session, because somebody else may have it.
#[utoipa::path(
    post,
    path = "/auth/refresh",
    operation_id = "refresh",
    tag = "Session",
    request_body(content = RefreshRequest, description = "The refresh token.",
                 example = json!(examples::refresh_token())),
    responses(
        (status = 200, description = "The next credential.", body = Credential,
         example = json!(examples::credential())),
        Problems<(RateLimited<Refresh>, (JsonBody, Refused, Db))>,
    ),
)]
#[post("/auth/refresh", data = "<body>")]
async fn refresh(
    _limit: RateLimited<Refresh>,
    body: JsonBody,
    db: &Db,
    shared: &State<SharedStatements>,
    issuer: &State<Issuer>,
    lifetimes: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<TokenResponse, Problem> {
    let missing = || Problem::new(Kind::InvalidRequest, "`refresh_token` must be a string");
    let token = body.0.str("refresh_token").ok_or_else(missing)?;
    let refreshed = exchange(db.pool(), shared, issuer, token, &origin.0, clock::now()).await?;
    Ok(TokenResponse::refreshed(&refreshed, **lifetimes))
}
