//! A service account at Google: its key signs the tokens that authorise calls of Google's APIs.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::client_key::NotSigned;
use super::json::Object;
use crate::secret::Secret;

/// The lifetime of a token, in seconds. Google accepts up to an hour.
const LIFETIME: i64 = 5 * 60;

/// An account and its key.
pub struct ServiceAccount {
    email: String,
    key_id: String,
    pair: KeyPair,
}

/// The text is no key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the JSON key of a service account")]
pub struct NoKeyFile;

impl ServiceAccount {
    /// Reads a JSON key file.
    ///
    /// # Errors
    /// See [`NoKeyFile`].
    pub fn read(file: &[u8]) -> Result<Self, NoKeyFile> {
        let members = Object::parse(file).map_err(|_| NoKeyFile)?;
        let member = |name| members.str(name).map(str::to_owned).ok_or(NoKeyFile);
        let pem = member("private_key")?;
        let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----").ok_or(NoKeyFile)?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----").ok_or(NoKeyFile)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| NoKeyFile)?;
        let pair = KeyPair::from_pkcs8(&der).map_err(|_| NoKeyFile)?;
        Ok(Self { email: member("client_email")?, key_id: member("private_key_id")?, pair })
    }

    /// Returns a token for one of Google's APIs: a JWT with RS256.
    ///
    /// # Errors
    /// See [`NotSigned`].
    pub fn token(&self, audience: &str, now: i64) -> Result<Secret<String>, NotSigned> {
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({ "alg": "RS256", "typ": "JWT", "kid": self.key_id });
        let claims = json!({
            "iss": self.email, "sub": self.email, "aud": audience, "iat": now, "exp": now.saturating_add(LIFETIME),
        });
        let message = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; self.pair.public_modulus_len()];
        let signed =
            self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature);
        signed.map_err(|_| NotSigned)?;
        Ok(Secret::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceAccount").field(&self.email).finish()
    }
}
