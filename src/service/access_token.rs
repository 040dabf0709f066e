//! Access tokens: JWTs as RFC 9068 profiles them, signed with ES256. Anyone with the public key can verify them (see
//! [`crate::keys::ring`]). They contain no e-mail address.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::custom_claims::CustomClaims;
use crate::keys::KeyRing;
use crate::keys::signing_key::Error;
use crate::secret::Secret;

/// Tolerated difference between the clocks of two instances, in seconds.
const LEEWAY: i64 = 5;

/// The claims that a verified access token makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessToken {
    /// `sub`: the user.
    pub user: Uuid,
    /// `sid`: the session.
    pub session: Uuid,
}

/// The token is not a valid access token of this service. Callers are not told which check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the access token is not valid")]
pub struct InvalidAccessToken;

/// Issues access tokens, and verifies them.
#[derive(Debug)]
pub struct Issuer {
    keys: KeyRing,
    name: String,
    /// Lifetime of a token, in seconds.
    pub ttl: u32,
}

/// The claims (RFC 9068 §2.2), the session that the token belongs to, and the user's custom claims, none of which has the
/// name of another one.
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: Uuid,
    aud: &'a str,
    exp: i64,
    iat: i64,
    jti: Uuid,
    sid: Uuid,
    client_id: &'a str,
    #[serde(flatten)]
    custom: &'a CustomClaims,
}

impl Issuer {
    /// Returns an issuer of that name (`iss` and `aud`), whose tokens live `ttl` seconds.
    #[must_use]
    pub const fn new(keys: KeyRing, name: String, ttl: u32) -> Self {
        Self { keys, name, ttl }
    }

    /// Returns the name, which is the service's public URL.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Issues a token for a user's session at `now` (seconds since the epoch), with the user's custom claims.
    ///
    /// # Errors
    /// No key is loaded, or the crypto backend failed.
    pub fn issue(
        &self,
        user: Uuid,
        session: Uuid,
        client_id: &str,
        custom: &CustomClaims,
        now: i64,
    ) -> Result<Secret<String>, Error> {
        let claims = Claims {
            iss: &self.name,
            sub: user,
            aud: &self.name,
            exp: now + i64::from(self.ttl),
            iat: now,
            jti: Uuid::new_v4(),
            sid: session,
            client_id,
            custom,
        };
        let claims = serde_json::to_vec(&claims).map_err(|_| Error::Backend)?;
        let key = self.keys.signing(now).ok_or(Error::Backend)?;
        let header = format!(r#"{{"alg":"ES256","typ":"at+jwt","kid":"{}"}}"#, key.kid);
        let mut token = String::with_capacity(640);
        URL_SAFE_NO_PAD.encode_string(header, &mut token);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = key.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(Secret::new(token))
    }

    /// Verifies a token as any other service would (RFC 9068 §4). The token chooses neither algorithm nor key: its
    /// `kid` only selects one of our keys.
    ///
    /// # Errors
    /// See [`InvalidAccessToken`].
    pub async fn verify(&self, token: &str, now: i64) -> Result<AccessToken, InvalidAccessToken> {
        let (message, signature) = token.rsplit_once('.').ok_or(InvalidAccessToken)?;
        let (header, claims) = message.split_once('.').ok_or(InvalidAccessToken)?;
        let header: Header = decode(header)?;
        if header.alg != "ES256" || header.typ != "at+jwt" {
            return Err(InvalidAccessToken);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| InvalidAccessToken)?;
        let key = self.keys.find_or_reload(&header.kid, now).await.ok_or(InvalidAccessToken)?;
        key.verify(message.as_bytes(), &signature).map_err(|_| InvalidAccessToken)?;
        let claims: Received = decode(claims)?;
        let sound = claims.iss == self.name
            && claims.aud == self.name
            && now < claims.exp.saturating_add(LEEWAY)
            && claims.iat <= now.saturating_add(LEEWAY)
            && claims.nbf.is_none_or(|nbf| nbf <= now.saturating_add(LEEWAY));
        sound.then_some(AccessToken { user: claims.sub, session: claims.sid }).ok_or(InvalidAccessToken)
    }
}

/// The header of our tokens. Any other member, such as `crit`, `jwk`, `jku` or `x5u`, makes a token invalid.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

#[derive(Deserialize)]
struct Received {
    iss: String,
    sub: Uuid,
    aud: String,
    exp: i64,
    iat: i64,
    nbf: Option<i64>,
    sid: Uuid,
}

fn decode<T: DeserializeOwned>(part: &str) -> Result<T, InvalidAccessToken> {
    let json = URL_SAFE_NO_PAD.decode(part).map_err(|_| InvalidAccessToken)?;
    serde_json::from_slice(&json).map_err(|_| InvalidAccessToken)
}
