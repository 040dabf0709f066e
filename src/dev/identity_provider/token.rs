//! The token endpoint (RFC 6749 §4.1.3, OpenID Connect Core §3.1.3): exchanges a code for an ID
//! token. The access token with it grants access to nothing.

use std::convert::Infallible;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rocket::form::Form;
use rocket::http::Status;
use rocket::request::{FromRequest, Outcome, Request};
use rocket::serde::json::Json;
use rocket::{FromForm, State, post};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use super::authorize::Grant;
use super::{IdentityProvider, TOKEN_TTL};
use crate::accounts::OpaqueToken;
use crate::clock;

/// An error (RFC 6749 §5.2).
pub(super) type OAuthError = (Status, Json<Value>);

pub(super) fn error(status: Status, error: &str, description: &str) -> OAuthError {
    (
        status,
        Json(json!({ "error": error, "error_description": description })),
    )
}

/// The `Authorization` header.
///
/// - **Succeeds** always.
pub(super) struct Authorization<'r>(Option<&'r str>);

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Authorization<'r> {
    type Error = Infallible;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Infallible> {
        Outcome::Success(Self(request.headers().get_one("Authorization")))
    }
}

#[derive(FromForm)]
pub(super) struct TokenRequest<'r> {
    grant_type: &'r str,
    code: &'r str,
    redirect_uri: &'r str,
    code_verifier: &'r str,
}

#[post("/token", data = "<form>")]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Rocket hands guards over by value"
)]
pub(super) fn exchange(
    provider: &State<IdentityProvider>,
    authorization: Authorization<'_>,
    form: Form<TokenRequest<'_>>,
) -> Result<Json<Value>, OAuthError> {
    if authorization.0 != Some(&credentials(provider)) {
        return Err(error(
            Status::Unauthorized,
            "invalid_client",
            "the client id or secret is wrong",
        ));
    }
    if form.grant_type != "authorization_code" {
        let why = "grant_type must be authorization_code";
        return Err(error(Status::BadRequest, "unsupported_grant_type", why));
    }
    // The code is used up in any case.
    let grant = provider
        .codes()
        .remove(form.code)
        .ok_or("the code is unknown or used");
    let grant = grant.and_then(|grant| check(grant, &form));
    let Grant { account, nonce, .. } =
        grant.map_err(|why| error(Status::BadRequest, "invalid_grant", why))?;
    Ok(Json(json!({
        "access_token": OpaqueToken::generate().text.expose(),
        "token_type": "Bearer",
        "expires_in": TOKEN_TTL,
        "id_token": provider.issue(&account, &provider.client_id, Some(&nonce), clock::now()),
    })))
}

/// Returns the client's credentials for HTTP Basic, encoded as RFC 6749 §2.3.1 requires.
fn credentials(provider: &IdentityProvider) -> String {
    let [id, secret] = [&provider.client_id, provider.client_secret.expose()]
        .map(|text| byte_serialize(text.as_bytes()).collect::<String>());
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}

/// Checks that the request has the redirect URI and the code verifier (RFC 7636 §4.6) of the
/// authorization request.
fn check(grant: Grant, form: &TokenRequest<'_>) -> Result<Grant, &'static str> {
    if grant.redirect_uri != form.redirect_uri {
        return Err("redirect_uri differs from that of the authorization request");
    }
    if grant.code_challenge
        != URL_SAFE_NO_PAD.encode(digest(&SHA256, form.code_verifier.as_bytes()))
    {
        return Err("code_verifier does not match code_challenge");
    }
    Ok(grant)
}
