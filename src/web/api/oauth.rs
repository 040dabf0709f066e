//! `POST /api/v1/auth/token` and `/api/v1/auth/revoke`: refresh (RFC 6749 §6) and revocation (RFC 7009) for standard
//! clients. Clients are public and not registered, so there is no client authentication and
//! `client_id` is ignored. There are no scopes either, and a requested scope is ignored (RFC 6749
//! §3.3).

use std::borrow::Cow;

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};
use rocket::{State, post};
use serde::Serialize;
use utoipa::ToSchema;

use super::token_response::{TokenGrant, TokenResponse};
use crate::accounts::refresh::refresh;
use crate::accounts::sign_out::{Scope, sign_out, sign_out_by_token};
use crate::accounts::{Issuer, SharedStatements};
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::{FormBody, Proof, RateLimited};
use crate::web::{Cached, Db, ErrorCode, Json, Problem, Problems, resource};
use crate::{clock, database};

resource!("Session": token, revoke);

/// A refresh request (RFC 6749 §6).
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `token` reads by hand")]
struct TokenRequest {
    grant_type: GrantType,
    /// The refresh token of the latest response.
    #[schema(min_length = 1)]
    refresh_token: String,
    /// Ignored, because clients are not registered (RFC 6749 §3.2.1).
    client_id: Option<String>,
}

/// The only supported grant type. The first refresh token comes from a sign-in.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "it describes what `token` reads by hand")]
enum GrantType {
    RefreshToken,
}

/// A token to revoke (RFC 7009 §2.1).
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `revoke` reads by hand")]
struct RevocationRequest {
    /// A refresh token or an access token.
    #[schema(min_length = 1)]
    token: String,
    /// Ignored: the service recognises both kinds of token.
    token_type_hint: Option<String>,
    /// Ignored, because clients are not registered (RFC 6749 §3.2.1).
    client_id: Option<String>,
}

/// An error (RFC 6749 §5.2).
#[derive(Serialize, ToSchema)]
struct OAuthError<'a> {
    error: OAuthErrorName,
    /// The check that failed, for developers. If the refresh token proves that it was the
    /// session's, it begins with the `reason` of `POST /api/v1/auth/refresh` and a colon.
    error_description: Cow<'a, str>,
}

/// The error's name.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum OAuthErrorName {
    InvalidRequest,
    InvalidGrant,
    UnsupportedGrantType,
    /// RFC 9449 §8.
    UseDpopNonce,
    /// RFC 9449 §5.
    InvalidDpopProof,
}

/// A failure, in the standard's form if RFC 6749 has a name for it, else as a problem.
#[derive(Debug)]
struct Failure {
    name: Option<OAuthErrorName>,
    problem: Problem,
}

impl Failure {
    fn malformed(detail: &'static str) -> Self {
        Problem::malformed(detail).into()
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let name = match problem.kind {
            ErrorCode::InvalidRefreshToken => Some(OAuthErrorName::InvalidGrant),
            ErrorCode::InvalidRequest | ErrorCode::UnsupportedMediaType => {
                Some(OAuthErrorName::InvalidRequest)
            }
            ErrorCode::UseDpopNonce => Some(OAuthErrorName::UseDpopNonce),
            ErrorCode::InvalidDpopProof => Some(OAuthErrorName::InvalidDpopProof),
            _ => None,
        };
        Self { name, problem }
    }
}

impl From<database::Error> for Failure {
    fn from(error: database::Error) -> Self {
        Problem::from(error).into()
    }
}

impl<'r> Responder<'r, 'static> for Failure {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let problem = self.problem.keep(request);
        match self.name {
            Some(error) => {
                let error_description = match problem.reason {
                    Some(reason) => format!("{reason}: {}", problem.detail).into(),
                    None => Cow::Borrowed(&*problem.detail),
                };
                let body = OAuthError {
                    error,
                    error_description,
                };
                Json(Status::BadRequest, body).respond_to(request)
            }
            None => problem.clone().respond_to(request),
        }
    }
}

/// The errors that are answered as problems.
type Elsewhere = (RateLimited<Refresh>, FormBody, Db);

/// Refresh, for OAuth clients
///
/// The token endpoint of RFC 6749 §6, for clients that read
/// `/.well-known/oauth-authorization-server`. It works like `POST /api/v1/auth/refresh`.
#[utoipa::path(
    request_body(content = TokenRequest, content_type = "application/x-www-form-urlencoded",
                 description = "The refresh token."),
    responses(
        (status = 200, description = "The new access token and refresh token.", body = TokenGrant),
        (status = 400, description = "The form is malformed, or the token cannot be exchanged (RFC 6749 §5.2).",
         body = OAuthError),
        Problems<Elsewhere>,
    ),
)]
#[post("/auth/token", data = "<form>")]
async fn token(
    _limit: RateLimited<Refresh>,
    proof: Result<Proof<'_>, Problem>,
    form: Result<FormBody, Problem>,
    db: &Db,
    shared: &State<SharedStatements>,
    issuer: &State<Issuer>,
) -> Result<TokenResponse, Failure> {
    let proof = proof?;
    let form = form?;
    match form.get("grant_type") {
        Some("refresh_token") => {}
        Some(_) => {
            let problem = Problem::malformed("`grant_type` must be `refresh_token`");
            return Err(Failure {
                name: Some(OAuthErrorName::UnsupportedGrantType),
                problem,
            });
        }
        None => return Err(Failure::malformed("`grant_type` is missing")),
    }
    let presented = form
        .take("refresh_token")
        .ok_or_else(|| Failure::malformed("`refresh_token` is missing"))?;
    match refresh(
        db,
        shared,
        issuer,
        &presented,
        proof.key(),
        &proof.origin,
        clock::now(),
    )
    .await
    {
        Ok(refreshed) => Ok(TokenResponse::granted(&refreshed)),
        Err(error) => Err(proof.explain(error).into()),
    }
}

// A session that has already ended answers 200, too: the client could do nothing about it (RFC 7009
// §2.2).
/// Sign out, for OAuth clients
///
/// Ends the session of a refresh token or an access token (RFC 7009). An unknown token is not an
/// error. Services that only verify access tokens accept this session's token until it expires.
#[utoipa::path(
    request_body(content = RevocationRequest, content_type = "application/x-www-form-urlencoded",
                 description = "The token."),
    responses(
        (status = 200, description = "The token's session has ended."),
        (status = 400, description = "The form is malformed (RFC 6749 §5.2).",
         body = OAuthError),
        Problems<Elsewhere>,
    ),
)]
#[post("/auth/revoke", data = "<form>")]
async fn revoke(
    _limit: RateLimited<Refresh>,
    proof: Result<Proof<'_>, Problem>,
    form: Result<FormBody, Problem>,
    db: &Db,
    issuer: &State<Issuer>,
    shared: &State<SharedStatements>,
) -> Result<Cached<()>, Failure> {
    let proof = proof?;
    let form = form?;
    let presented = form
        .take("token")
        .ok_or_else(|| Failure::malformed("`token` is missing"))?;
    let key = proof.key();
    let scope = Scope::Local;
    let unproven = match issuer.verify(&presented, clock::now()).await {
        Ok(token) if token.key.is_some() && token.key != key => Some(token.session),
        Ok(token) => sign_out(db, token.session, scope, &proof.origin)
            .await
            .map(|()| None)?,
        Err(_) => {
            sign_out_by_token(
                db,
                &shared.successors,
                &presented,
                key,
                scope,
                &proof.origin,
            )
            .await?
        }
    };
    if let Some(session) = unproven {
        return Err(proof.refuse(session).into());
    }
    Ok(Cached::never(()))
}
