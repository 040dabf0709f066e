//! `POST /api/v1/auth/refresh`: exchanges a refresh token for the next credential.

use rocket::{State, post};
use utoipa::ToSchema;

use super::token_response::{Credential, TokenResponse};
use crate::clock;
use crate::config;
use crate::service::refresh::refresh as exchange;
use crate::service::{Issuer, SharedStatements};
use crate::web::database::Db;
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::{ClientOrigin, JsonBody, RateLimited, json_body};
use crate::web::openapi::problems::{Problems, failures};
use crate::web::problem::{ErrorCode, Problem};
use crate::web::resource::resource;

resource!("Session": refresh);

/// A refresh request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `refresh` reads by hand")]
struct RefreshRequest {
    /// The refresh token of the latest response.
    refresh_token: String,
}

failures!(Refused: ErrorCode::InvalidRefreshToken);

/// Exchange a refresh token for new tokens
///
/// Each refresh token can be used once, and the response contains its successor. Store the new token before you do
/// anything else, and never send two refreshes at the same time. If the response is lost, repeat the request with
/// the same token. Within 30 seconds the response contains the same successor; after that, for one day by default,
/// it contains another one. Any other reuse of a token ends the session, because the token may be stolen.
#[utoipa::path(
    request_body(content = RefreshRequest, description = "The refresh token."),
    responses(
        (status = 200, description = "The new access token and refresh token.", body = Credential),
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
    let token = json_body::required(&body.0, "refresh_token")?;
    let now = clock::now();
    let refreshed = exchange(db.pool(), shared, issuer, token, &origin.0, now).await?;
    Ok(TokenResponse::refreshed(&refreshed, **lifetimes, now))
}
