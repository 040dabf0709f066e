//! Access tokens: JWTs as RFC 9068 profiles them, signed with ES256, verifiable by anyone who has
//! the public key. No e-mail address is in them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use uuid::Uuid;

use super::signing_key::{Error, SigningKey};
use crate::secret::Secret;

/// Issues access tokens.
#[derive(Debug)]
pub struct Issuer {
    key: SigningKey,
    /// The encoded header, the same for every token of the key.
    header: String,
    name: String,
    /// Lifetime of a token, in seconds.
    pub ttl: u32,
}

/// The claims (RFC 9068 §2.2), and the session that the token belongs to.
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
}

impl Issuer {
    /// An issuer of that name (`iss`, and `aud` as well), whose tokens live `ttl` seconds.
    #[must_use]
    pub fn new(key: SigningKey, name: String, ttl: u32) -> Self {
        let header = format!(r#"{{"alg":"ES256","typ":"at+jwt","kid":"{}"}}"#, key.kid);
        Self { key, header: URL_SAFE_NO_PAD.encode(header), name, ttl }
    }

    /// A token for a user's session, issued `now` (seconds since the epoch).
    ///
    /// # Errors
    /// The crypto backend failed.
    pub fn issue(
        &self,
        user: Uuid,
        session: Uuid,
        client_id: &str,
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
        };
        let claims = serde_json::to_vec(&claims).map_err(|_| Error::Backend)?;
        let mut token = String::with_capacity(640);
        token.push_str(&self.header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.key.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(Secret::new(token))
    }
}
