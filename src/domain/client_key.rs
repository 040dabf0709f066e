//! The key by which Apple knows our client: it signs a client secret for each request ("Creating a client secret").

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use super::signing::{NotSigned, compact, pkcs8};
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

impl ClientKey {
    /// Reads the contents of a `.p8` file. A line break may be written as `\n`, as in environment variables.
    pub fn read(team_id: String, key_id: String, pem: &str) -> Result<Self, NoKey> {
        let pem = pem.replace("\\n", "\n");
        let der = pkcs8(&pem).ok_or(NoKey)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map_err(|_| NoKey)?;
        Ok(Self { team_id, key_id, pair })
    }

    /// Returns a client secret for one of our client ids: a JWT with ES256.
    pub fn secret(&self, client_id: &str, now: i64) -> Result<Secret<String>, NotSigned> {
        let header = json!({ "alg": "ES256", "kid": self.key_id });
        let claims = json!({
            "iss": self.team_id, "iat": now, "exp": now.saturating_add(LIFETIME), "aud": AUDIENCE, "sub": client_id,
        });
        compact(&header, &claims, |message| self.pair.sign(&SystemRandom::new(), message))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientKey").field(&self.key_id).finish()
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    /// Returns a new key in the form of Apple's files.
    fn pem() -> String {
        let key =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let body = STANDARD.encode(key);
        let (first, rest) = body.split_at(64);
        format!("-----BEGIN PRIVATE KEY-----\n{first}\n{rest}\n-----END PRIVATE KEY-----")
    }

    fn read(pem: &str) -> Result<ClientKey, NoKey> {
        ClientKey::read("TEAM000001".into(), "KEY0000001".into(), pem)
    }

    #[test]
    fn a_client_secret_is_a_short_lived_jwt_for_one_client() {
        let pem = pem();
        let key = read(&pem).unwrap();
        let secret = key.secret("com.example.app", 1_000).unwrap();
        let (message, signature) = secret.expose().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
        public.verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let parts: Vec<Value> = message
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(parts[0], json!({ "alg": "ES256", "kid": "KEY0000001" }));
        let claims = json!({
            "iss": "TEAM000001", "iat": 1_000, "exp": 1_300, "aud": "https://appleid.apple.com", "sub": "com.example.app",
        });
        assert_eq!(parts[1], claims);
        assert!(!format!("{key:?}").contains(&pem[30..60]));
    }

    #[test]
    fn a_key_is_read_with_escaped_line_breaks_and_nothing_else_is_taken_for_one() {
        let pem = pem();
        assert!(read(&pem.replace('\n', "\\n")).is_ok());
        assert!(read(&format!("a comment\n{pem}\n")).is_ok());
        for text in
            ["", "secret", &pem.replace("PRIVATE", "EC PRIVATE"), &pem.replace("MI", "NI"), &pem[..80]]
        {
            assert_eq!(read(text).unwrap_err(), NoKey, "{text}");
        }
    }
}
