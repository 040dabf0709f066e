//! A service account at Google: its key signs the tokens that authorise calls of Google's APIs.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use serde_json::json;

use super::json::Object;
use super::signing::{NotSigned, compact, pkcs8};
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
    pub fn read(file: &[u8]) -> Result<Self, NoKeyFile> {
        let members = Object::parse(file).map_err(|_| NoKeyFile)?;
        let member = |name| members.str(name).map(str::to_owned).ok_or(NoKeyFile);
        let der = pkcs8(&member("private_key")?).ok_or(NoKeyFile)?;
        let pair = KeyPair::from_pkcs8(&der).map_err(|_| NoKeyFile)?;
        Ok(Self { email: member("client_email")?, key_id: member("private_key_id")?, pair })
    }

    /// Returns a token for one of Google's APIs: a JWT with RS256.
    pub fn token(&self, audience: &str, now: i64) -> Result<Secret<String>, NotSigned> {
        let header = json!({ "alg": "RS256", "typ": "JWT", "kid": self.key_id });
        let claims = json!({
            "iss": self.email, "sub": self.email, "aud": audience, "iat": now, "exp": now.saturating_add(LIFETIME),
        });
        compact(&header, &claims, |message| {
            let mut signature = vec![0; self.pair.public_modulus_len()];
            self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)?;
            Ok(signature)
        })
    }
}

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceAccount").field(&self.email).finish()
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    /// Returns a new key file, as Google's console has it.
    fn file() -> Value {
        let key = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        json!({
            "type": "service_account", "private_key_id": "key-1", "private_key": pem,
            "client_email": "events@project.example",
        })
    }

    fn read(file: &Value) -> Result<ServiceAccount, NoKeyFile> {
        ServiceAccount::read(file.to_string().as_bytes())
    }

    #[test]
    fn a_token_is_a_short_lived_jwt_for_one_interface() {
        let file = file();
        let account = read(&file).unwrap();
        let token = account.token("https://risc.example/", 1_000).unwrap();
        let (message, signature) = token.expose().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, account.pair.public_key().as_ref());
        public.verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let parts: Vec<Value> = message
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        let claims = json!({
            "iss": "events@project.example", "sub": "events@project.example", "aud": "https://risc.example/",
            "iat": 1_000, "exp": 1_300,
        });
        assert_eq!(parts, [json!({ "alg": "RS256", "typ": "JWT", "kid": "key-1" }), claims]);
        let shown = format!("{account:?}");
        assert_eq!(shown, "ServiceAccount(\"events@project.example\")");
    }

    #[test]
    fn nothing_but_a_whole_key_file_is_taken_for_one() {
        let whole = file();
        for member in ["private_key_id", "private_key", "client_email"] {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(member);
            assert_eq!(read(&lacking).unwrap_err(), NoKeyFile, "{member}");
        }
        let pem = whole["private_key"].as_str().unwrap();
        for text in
            ["", "secret", &pem.replace("PRIVATE", "RSA PRIVATE"), &pem.replace("MI", "NI"), &pem[..80]]
        {
            let mut other = whole.clone();
            other["private_key"] = text.into();
            assert_eq!(read(&other).unwrap_err(), NoKeyFile, "{text}");
        }
        assert_eq!(ServiceAccount::read(pem.as_bytes()).unwrap_err(), NoKeyFile);
    }
}
