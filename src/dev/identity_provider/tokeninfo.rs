//! Token information in the form of Google's `https://oauth2.googleapis.com/tokeninfo`: the claims and the header of
//! a valid token, with every value as a string. No standard describes it. As at Google, a token for any audience is
//! valid; the caller has to check the audience.

use rocket::serde::json::Json;
use rocket::{State, get};
use serde_json::{Map, Value};

use super::IdentityProvider;
use super::oauth_error::OAuthError;
use crate::clock;

#[get("/tokeninfo?<id_token>")]
pub(super) fn tokeninfo(
    provider: &State<IdentityProvider>,
    id_token: Option<&str>,
) -> Result<Json<Map<String, Value>>, OAuthError> {
    let claims = id_token.and_then(|token| provider.verify(token, clock::now()));
    let claims = claims.ok_or(OAuthError::new("invalid_token", "Invalid Value"))?;
    Ok(Json(claims.into_iter().map(as_string).collect()))
}

fn as_string((name, value): (String, Value)) -> (String, Value) {
    match value {
        Value::String(_) => (name, value),
        other => (name, other.to_string().into()),
    }
}
