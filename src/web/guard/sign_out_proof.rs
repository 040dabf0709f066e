//! The proof to sign out: an access token, or the refresh token when that has expired.

use rocket::data::Data;
use rocket::request::Request;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::bearer::Bearer;
use super::json_body::{self, JsonBody, only};
use super::page::Page;
use super::shared::data_guard;
use crate::web::{Problem, errors};

/// Proof enough to end a session.
///
/// - **Succeeds** with the session of a valid access token, even if it has ended, or else with the
///   refresh token in the body or the page's cookie.
/// - **Fails** when there is neither, or when the body is malformed.
#[derive(Debug)]
pub enum SignOutProof {
    /// The session of the access token.
    Session(Uuid),
    /// A refresh token that has not been looked up yet.
    Token(String),
}

/// A sign-out by refresh token.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignOutRequest {
    /// The refresh token of the latest response. An unknown or used token is not an error.
    pub refresh_token: Option<String>,
}

errors!(SignOutProof: <(Bearer, JsonBody, Page<'_>)>::kinds());

data_guard!(SignOutProof, |request, data| identify(request, data).await);

async fn identify(request: &Request<'_>, data: Data<'_>) -> Result<SignOutProof, Problem> {
    let cookie = Page::of(request)?.token;
    let bearer = Bearer::of(request).await;
    let body = json_body::read_if_any(request, data)
        .await?
        .unwrap_or_default();
    only(&body, &["refresh_token"], "the body")?;
    let token = body.get("refresh_token").map(Value::as_str);
    match (token.or(cookie.map(Some)), bearer) {
        (Some(None), _) => Err(Problem::malformed("`refresh_token` must be a string")),
        (_, Ok(bearer)) => Ok(SignOutProof::Session(bearer.0.session)),
        (Some(Some(token)), Err(_)) => Ok(SignOutProof::Token(token.to_owned())),
        (None, Err(problem)) => Err(problem),
    }
}
