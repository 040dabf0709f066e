//! The provider's ID tokens (OpenID Connect Core §2): JWTs in the compact form of JWS (RFC 7515
//! §3.1), signed with RS256. The service parses tokens in `domain/id_token.rs`, which shares no
//! code with this file, so that neither can hide a mistake of the other.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rocket::http::Status;
use rocket::serde::json::Json;
use rocket::{State, get};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::account::DevAccount;
use super::token::{OAuthError, error};
use super::{IdentityProvider, TOKEN_TTL};
use crate::clock;
use crate::domain::Email;

impl IdentityProvider {
    /// Issues a token for an account. `issued` is in seconds since 1970-01-01T00:00:00Z.
    pub(super) fn issue(
        &self,
        account: &DevAccount,
        audience: &str,
        nonce: Option<&str>,
        issued: i64,
    ) -> String {
        let header = json!({ "alg": "RS256", "kid": self.key.id, "typ": "JWT" });
        let mut claims = json!({
            "iss": self.issuer,
            "azp": audience,
            "aud": audience,
            "sub": account.subject,
            "email": account.email.as_ref().map(Email::as_given),
            "email_verified": account.email.as_ref().map(|_| account.verified),
            "name": account.name,
            "picture": account.picture,
            "nonce": nonce,
            "iat": issued,
            "exp": issued + TOKEN_TTL,
            "jti": Uuid::new_v4(),
        });
        // A claim without a value is absent.
        if let Some(claims) = claims.as_object_mut() {
            claims.retain(|_, value| !value.is_null());
        }
        self.sign(&header, &claims)
    }

    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.key.sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Returns the claims and the header, as one object, of a token that this provider issued and
    /// that has not expired. The caller has to check the audience.
    pub(super) fn verify(&self, token: &str, now: i64) -> Option<Map<String, Value>> {
        let (message, signature) = token.rsplit_once('.')?;
        // A message has exactly one signature of this kind (RFC 8017 §8.2). The header is signed,
        // too, so it needs no check.
        if URL_SAFE_NO_PAD.encode(self.key.sign(message.as_bytes())) != signature {
            return None;
        }
        let (header, claims) = message.split_once('.')?;
        let mut claims = decode(claims)?;
        claims.append(&mut decode(header)?);
        // A server on another port has another issuer but the same key.
        let current =
            claims.get("iss")? == self.issuer.as_str() && now < claims.get("exp")?.as_i64()?;
        current.then_some(claims)
    }
}

fn decode(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Token information in the form of Google's `https://oauth2.googleapis.com/tokeninfo`: the claims
/// and the header of a valid token, with every value as a string. No standard describes it. As at
/// Google, a token for any audience is valid.
#[get("/tokeninfo?<id_token>")]
pub(super) fn tokeninfo(
    provider: &State<IdentityProvider>,
    id_token: Option<&str>,
) -> Result<Json<Map<String, Value>>, OAuthError> {
    let claims = id_token.and_then(|token| provider.verify(token, clock::now()));
    let claims =
        claims.ok_or_else(|| error(Status::BadRequest, "invalid_token", "Invalid Value"))?;
    Ok(Json(claims.into_iter().map(as_string).collect()))
}

fn as_string((name, value): (String, Value)) -> (String, Value) {
    match value {
        Value::String(_) => (name, value),
        other => (name, other.to_string().into()),
    }
}
