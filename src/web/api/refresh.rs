//! `POST /api/v1/auth/refresh`: exchanges a refresh token for the next credential.

use rocket::{State, post};
use utoipa::ToSchema;

use super::token_response::{Credential, TokenResponse};
use crate::accounts::refresh::refresh as exchange;
use crate::accounts::{Issuer, SharedStatements};
use crate::clock;
use crate::web::guard::proof::ProofErrors;
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::{PresentedToken, Proof, RateLimited};
use crate::web::{Db, Problem, Problems, resource};

resource!("Session": refresh);

/// A refresh request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `refresh` reads by hand")]
struct RefreshRequest {
    /// The refresh token of the latest response.
    refresh_token: String,
}

/// Exchange a refresh token for new tokens
///
/// Each refresh token can be used once, and the response contains its successor. Store the new
/// token before you do anything else, and never send two refreshes at the same time. If the
/// response is lost, repeat the request with the same token. Within 30 seconds the response
/// contains the same successor; after that, for one day by default, it contains another one. Any
/// other reuse of a token ends the session, because the token may be stolen.
///
/// If a page sends no body, the token is read from its cookie, and the next one is there, too. A
/// refusal leaves the cookie.
#[utoipa::path(
    request_body(content = RefreshRequest, description = "The refresh token. A page whose token is in the cookie sends no body."),
    responses(
        (status = 200, description = "The new access token and refresh token.", body = Credential),
        Problems<((RateLimited<Refresh>, ProofErrors), PresentedToken<'_>, Db)>,
    ),
)]
#[post("/auth/refresh", data = "<token>")]
async fn refresh(
    _limit: RateLimited<Refresh>,
    proof: Proof<'_>,
    token: PresentedToken<'_>,
    db: &Db,
    shared: &State<SharedStatements>,
    issuer: &State<Issuer>,
) -> Result<TokenResponse, Problem> {
    let now = clock::now();
    // A refusal leaves the cookie: by the time it arrives, another tab may have signed in, whose
    // cookie it would delete.
    let refreshed = exchange(
        db,
        shared,
        issuer,
        &token.text,
        proof.key(),
        &proof.origin,
        now,
    )
    .await
    .map_err(|error| proof.explain(error))?;
    Ok(TokenResponse::refreshed(
        &refreshed,
        now,
        token.page.as_ref(),
    ))
}
