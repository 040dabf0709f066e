//! Access tokens: JWTs as RFC 9068 profiles them, signed with ES256. Anyone with the public key can
//! verify them (see [`crate::keys::ring`]). They contain no e-mail address.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::{CustomClaims, Thumbprint};
use crate::keys::KeyRing;
use crate::keys::signing_key::Error;
use crate::secret::Secret;

/// Tolerated difference between the clocks of two instances, in seconds.
const LEEWAY: i64 = 5;

/// The size at which `newer` replaces `older`: the cache keeps at least so many of the latest
/// verified tokens, and at most twice as many.
const REMEMBERED: usize = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessToken {
    /// `sub`: the user.
    pub user: Uuid,
    /// `sid`: the session.
    pub session: Uuid,
    /// `cnf.jkt`: the key that the session is bound to, if any.
    pub key: Option<Thumbprint>,
}

/// The token is not a valid access token of this service. Callers do not learn which check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the access token is not valid")]
pub struct InvalidAccessToken;

#[derive(Debug)]
pub struct Issuer {
    keys: KeyRing,
    /// The service's public URL.
    pub name: String,
    /// Lifetime of a token whose session does not end sooner, in seconds.
    pub ttl: u32,
    verified: Mutex<Verified>,
}

/// Tokens that were verified, so that a signature is verified once and not with each request. When
/// `newer` is full, it replaces `older`.
#[derive(Debug, Default)]
struct Verified {
    newer: HashMap<TokenHash, Remembered>,
    older: HashMap<TokenHash, Remembered>,
}

/// The SHA-256 of a token.
type TokenHash = [u8; 32];

#[derive(Debug, Clone)]
struct Remembered {
    token: AccessToken,
    exp: i64,
    kid: String,
}

impl Verified {
    fn find(&self, hash: &TokenHash) -> Option<&Remembered> {
        self.newer.get(hash).or_else(|| self.older.get(hash))
    }

    fn remember(&mut self, hash: TokenHash, token: Remembered) {
        if self.newer.len() == REMEMBERED {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(hash, token);
    }
}

/// The claims (RFC 9068 §2.2), the session that the token belongs to, and the user's custom claims,
/// whose names differ from all others.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    cnf: Option<Confirmation>,
    #[serde(flatten)]
    custom: &'a CustomClaims,
}

/// The key that a token is bound to (RFC 9449 §6.1).
#[derive(Serialize, Deserialize)]
struct Confirmation {
    jkt: String,
}

impl Issuer {
    /// Returns an issuer of that name (`iss` and `aud`), whose tokens live `ttl` seconds.
    pub fn new(keys: KeyRing, name: String, ttl: u32) -> Self {
        Self {
            keys,
            name,
            ttl,
            verified: Mutex::default(),
        }
    }

    /// Issues a token for a user's session, valid from `iat` to `exp` (seconds since the epoch),
    /// with the user's custom claims, and bound to the session's key if it has one.
    pub fn issue(
        &self,
        user: Uuid,
        session: Uuid,
        client_id: &str,
        key: Option<&Thumbprint>,
        custom: &CustomClaims,
        Range {
            start: iat,
            end: exp,
        }: Range<i64>,
    ) -> Result<Secret<String>, Error> {
        let claims = Claims {
            iss: &self.name,
            sub: user,
            aud: &self.name,
            exp,
            iat,
            jti: Uuid::new_v4(),
            sid: session,
            client_id,
            cnf: key.map(|key| Confirmation {
                jkt: URL_SAFE_NO_PAD.encode(key),
            }),
            custom,
        };
        let claims = serde_json::to_vec(&claims).map_err(|_| Error::Backend)?;
        let key = self.keys.signing(iat).ok_or(Error::Backend)?;
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

    /// Verifies a token as any other service would (RFC 9068 §4). The token chooses neither
    /// algorithm nor key: its `kid` only selects one of our keys. A token that was verified before
    /// is compared by its hash; it still has to be current, and its key published.
    pub async fn verify(&self, token: &str, now: i64) -> Result<AccessToken, InvalidAccessToken> {
        let hash = digest(&SHA256, token.as_bytes())
            .as_ref()
            .try_into()
            .map_err(|_| InvalidAccessToken)?;
        let known = self
            .verified()
            .find(&hash)
            .filter(|known| is_current(known.exp, now))
            .cloned();
        if let Some(known) = known
            && self.keys.find(&known.kid, now).is_some()
        {
            return Ok(known.token);
        }
        let verified = self.verify_all(token, now).await?;
        let token = verified.token;
        self.verified().remember(hash, verified);
        Ok(token)
    }

    fn verified(&self) -> MutexGuard<'_, Verified> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn verify_all(&self, token: &str, now: i64) -> Result<Remembered, InvalidAccessToken> {
        let (message, signature) = token.rsplit_once('.').ok_or(InvalidAccessToken)?;
        let (header, claims) = message.split_once('.').ok_or(InvalidAccessToken)?;
        let header: Header = decode(header)?;
        if header.alg != "ES256" || header.typ != "at+jwt" {
            return Err(InvalidAccessToken);
        }
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| InvalidAccessToken)?;
        let key = self
            .keys
            .find_or_reload(&header.kid, now)
            .await
            .ok_or(InvalidAccessToken)?;
        key.verify(message.as_bytes(), &signature)
            .map_err(|_| InvalidAccessToken)?;
        let claims: Received = decode(claims)?;
        let sound = claims.iss == self.name
            && claims.aud == self.name
            && is_current(claims.exp, now)
            && claims.iat <= now.saturating_add(LEEWAY)
            && claims
                .nbf
                .is_none_or(|nbf| nbf <= now.saturating_add(LEEWAY));
        let jkt = claims
            .cnf
            .map(|cnf| URL_SAFE_NO_PAD.decode(cnf.jkt).ok()?.try_into().ok());
        // A confirmation that cannot be read must not make an unbound token.
        let key = jkt.map(|jkt| jkt.ok_or(InvalidAccessToken)).transpose()?;
        let token = AccessToken {
            user: claims.sub,
            session: claims.sid,
            key,
        };
        sound
            .then_some(Remembered {
                token,
                exp: claims.exp,
                kid: header.kid,
            })
            .ok_or(InvalidAccessToken)
    }
}

/// Returns the session that a token names, perhaps falsely: nothing in it is verified.
pub fn named_session(token: &str) -> Option<Uuid> {
    #[derive(Deserialize)]
    struct Named {
        sid: Uuid,
    }
    decode(token.split('.').nth(1)?)
        .ok()
        .map(|Named { sid }| sid)
}

const fn is_current(exp: i64, now: i64) -> bool {
    now < exp.saturating_add(LEEWAY)
}

/// The header of our tokens. Any other member, such as `crit`, `jwk`, `jku` or `x5u`, makes a token
/// invalid.
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
    cnf: Option<Confirmation>,
}

fn decode<T: DeserializeOwned>(part: &str) -> Result<T, InvalidAccessToken> {
    let json = URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| InvalidAccessToken)?;
    serde_json::from_slice(&json).map_err(|_| InvalidAccessToken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_recent_tokens_and_at_most_twice_their_limit() {
        let mut verified = Verified::default();
        let hash = |number: usize| {
            let mut hash = TokenHash::default();
            hash[..8].copy_from_slice(&number.to_be_bytes());
            hash
        };
        let token = AccessToken {
            user: Uuid::nil(),
            session: Uuid::nil(),
            key: None,
        };
        for number in 0..5 * REMEMBERED / 2 {
            verified.remember(
                hash(number),
                Remembered {
                    token,
                    exp: 0,
                    kid: String::new(),
                },
            );
            assert!(
                verified
                    .find(&hash(number.saturating_sub(REMEMBERED - 1)))
                    .is_some(),
                "{number}"
            );
        }
        assert!(verified.newer.len() + verified.older.len() <= 2 * REMEMBERED);
        assert!(verified.find(&hash(0)).is_none());
    }
}
