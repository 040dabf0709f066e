//! The provider's ID tokens (OpenID Connect Core §2): JWTs in the compact form of JWS (RFC 7515 §3.1), signed with
//! RS256. The service parses tokens in `domain/id_token.rs`, which shares no code with this file, so that neither
//! can hide a mistake of the other.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::account::Person;
use super::key::Unsigned;
use super::{IdentityProvider, TOKEN_TTL};
use crate::domain::email::Email;
use crate::secret::Secret;

const ALGORITHM: &str = "RS256";

/// The content of a token besides the user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    pub audience: &'a str,
    pub nonce: Option<&'a str>,
    /// The time of issue, in seconds since 1970-01-01T00:00:00Z.
    pub issued: i64,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    kid: &'a str,
    typ: &'a str,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    azp: &'a str,
    aud: &'a str,
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email_verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
    iat: i64,
    exp: i64,
    jti: Uuid,
}

impl IdentityProvider {
    /// Issues a token for a user.
    pub(super) fn issue(&self, person: &Person, terms: Terms<'_>) -> Result<Secret<String>, Unsigned> {
        let header = Header { alg: ALGORITHM, kid: &self.key.jwk.kid, typ: "JWT" };
        let claims = Claims {
            iss: &self.issuer,
            azp: terms.audience,
            aud: terms.audience,
            sub: &person.subject,
            email: person.email.as_ref().map(Email::as_given),
            email_verified: person.email.is_some().then_some(person.verified),
            name: person.name.as_deref(),
            picture: person.picture.as_deref(),
            nonce: terms.nonce,
            iat: terms.issued,
            exp: terms.issued + i64::from(TOKEN_TTL),
            jti: Uuid::new_v4(),
        };
        let mut token = format!("{}.{}", encode(&header)?, encode(&claims)?);
        let signature = self.key.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(Secret::new(token))
    }

    /// Returns the claims and the header, as one object, of a token that this provider issued and that has not
    /// expired. The caller has to check the audience.
    pub(super) fn verify(&self, token: &str, now: i64) -> Option<Map<String, Value>> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let mut header = decode(header)?;
        // The header chooses neither the algorithm nor the key (RFC 8725 §3.1).
        let ours = header.get("alg")? == ALGORITHM && header.get("kid")? == self.key.jwk.kid.as_str();
        if !ours || !self.key.verifies(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?) {
            return None;
        }
        let mut claims = decode(claims)?;
        let current = claims.get("iss")? == self.issuer.as_str() && now < claims.get("exp")?.as_i64()?;
        claims.append(&mut header);
        current.then_some(claims)
    }
}

fn encode(part: &impl Serialize) -> Result<String, Unsigned> {
    serde_json::to_vec(part).map(|json| URL_SAFE_NO_PAD.encode(json)).map_err(|_| Unsigned)
}

fn decode(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
