//! The key by which Apple knows our client: it signs a client secret for each request ("Creating a
//! client secret").

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::secret::Secret;

/// The audience of a client secret.
const AUDIENCE: &str = "https://appleid.apple.com";
/// The lifetime of a client secret, in seconds. Apple accepts up to six months.
const LIFETIME: i64 = 5 * 60;

/// A private key of a team at Apple.
pub struct ClientKey {
    team_id: String,
    key_id: String,
    pair: EcdsaKeyPair,
}

/// The text is not a private key as Apple issues them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key is no P-256 key in PKCS#8")]
pub struct NoKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system's random number generator failed")]
pub struct NotSigned;

impl ClientKey {
    /// Reads the contents of a `.p8` file. A line break may be written as `\n`, as in environment
    /// variables.
    pub fn read(team_id: String, key_id: String, pem: &str) -> Result<Self, NoKey> {
        let pem = pem.replace("\\n", "\n");
        let der = pkcs8(&pem).ok_or(NoKey)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map_err(|_| NoKey)?;
        Ok(Self {
            team_id,
            key_id,
            pair,
        })
    }

    /// Returns a client secret for one of our client ids: a JWT with ES256, in its compact form
    /// (RFC 7515 §7.1).
    pub fn secret(&self, client_id: &str, now: i64) -> Result<Secret<String>, NotSigned> {
        let header = json!({ "alg": "ES256", "kid": self.key_id });
        let claims = json!({
            "iss": self.team_id, "iat": now, "exp": now.saturating_add(LIFETIME), "aud": AUDIENCE, "sub": client_id,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), message.as_bytes())
            .map_err(|_| NotSigned)?;
        Ok(Secret::new(format!(
            "{message}.{}",
            URL_SAFE_NO_PAD.encode(signature)
        )))
    }
}

/// Returns the PKCS#8 document of a private key in PEM (RFC 7468 §10), or `None` for another text.
fn pkcs8(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientKey").field(&self.key_id).finish()
    }
}
