//! The endpoints of Sign in with Apple: keys, the exchange of codes, and revocation. They verify
//! our client secret as Apple's documentation states ("Creating a client secret").

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::answer::Answer;
use super::recorded::Recorded;
use crate::support::signer::{Signer, jwks};
use crate::support::token::now;

/// `iss` of Apple's tokens.
pub const APPLE: &str = "https://appleid.apple.com";
/// The team of our client secrets.
pub const TEAM_ID: &str = "TEAM000001";
/// The id of the key that signs them.
pub const KEY_ID: &str = "KEY0000001";
/// The longest life of a client secret: six months.
const LONGEST: i64 = 15_777_000;

/// A token that Apple has issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    pub subject: String,
    pub client_id: String,
    pub token: String,
    pub revoked: bool,
}

struct Code {
    subject: String,
    client_id: String,
    redirect_uri: Option<String>,
}

#[derive(Default)]
struct Books {
    codes: HashMap<String, Code>,
    issued: Vec<Issued>,
    rejected: Vec<String>,
}

/// Apple's state.
#[derive(Default)]
pub(super) struct Apple(Mutex<Books>);

/// The team's private key: a `.p8` file, as Apple offers it for download.
pub fn private_key() -> &'static str {
    static KEY: LazyLock<String> = LazyLock::new(other_key);
    &KEY
}

/// A private key of the same form, unknown to Apple.
pub fn other_key() -> String {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .unwrap();
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
        STANDARD.encode(key)
    )
}

/// Apple's `id_token` for that client.
pub fn id_token(subject: &str, email: &str, client_id: &str) -> String {
    Signer::Ec.token(&json!({
        "iss": APPLE, "aud": client_id, "sub": subject, "email": email, "email_verified": "true",
        "iat": now(), "exp": now() + 86_400,
    }))
}

impl Apple {
    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn code(
        &self,
        subject: &str,
        client_id: &str,
        redirect_uri: Option<&str>,
    ) -> String {
        let mut random = [0; 12];
        aws_lc_rs::rand::fill(&mut random).unwrap();
        let code = format!("c{}.0.rrsvq", URL_SAFE_NO_PAD.encode(random));
        let known = Code {
            subject: subject.to_owned(),
            client_id: client_id.to_owned(),
            redirect_uri: redirect_uri.map(str::to_owned),
        };
        self.books().codes.insert(code.clone(), known);
        code
    }

    pub(super) fn issued(&self) -> Vec<Issued> {
        self.books().issued.clone()
    }

    pub(super) fn rejected(&self) -> Vec<String> {
        self.books().rejected.clone()
    }

    /// Processes a request to one of Apple's endpoints, and returns the response.
    pub(super) fn answer(&self, request: &Recorded) -> Option<Answer> {
        let json = |code, value: &Value| {
            Answer::new(
                code,
                "application/json;charset=ISO-8859-1",
                value.to_string().into_bytes(),
            )
        };
        let done = match request.path.as_str() {
            "/auth/keys" => Ok(jwks(&[Signer::Ec.jwk()])),
            "/auth/token" => self.token(request),
            "/auth/revoke" => self.revoke(request).map(|()| Value::Null),
            _ => return None,
        };
        Some(match done {
            Ok(Value::Null) => Answer {
                code: 200,
                headers: Vec::new(),
                body: Vec::new(),
            },
            Ok(value) => json(200, &value),
            Err(error) => {
                self.books().rejected.push(error.to_owned());
                json(400, &json!({ "error": error }))
            }
        })
    }

    fn token(&self, request: &Recorded) -> Result<Value, &'static str> {
        let client_id = client(request)?;
        if field(request, "grant_type").as_deref() != Some("authorization_code") {
            return Err("unsupported_grant_type");
        }
        let code = field(request, "code").ok_or("invalid_request")?;
        let mut books = self.books();
        // A code is valid once.
        let known = books.codes.remove(&code).ok_or("invalid_grant")?;
        if known.client_id != client_id || known.redirect_uri != field(request, "redirect_uri") {
            return Err("invalid_grant");
        }
        let token = format!("r{code}");
        let claims = json!({ "iss": APPLE, "aud": client_id, "sub": known.subject, "iat": now(), "exp": now() + 86_400 });
        let answer = json!({
            "access_token": format!("a{code}"), "token_type": "Bearer", "expires_in": 3600, "refresh_token": token,
            "id_token": Signer::Ec.token(&claims),
        });
        books.issued.push(Issued {
            subject: known.subject,
            client_id,
            token,
            revoked: false,
        });
        Ok(answer)
    }

    fn revoke(&self, request: &Recorded) -> Result<(), &'static str> {
        let client_id = client(request)?;
        let token = field(request, "token").ok_or("invalid_request")?;
        // An unknown token counts as revoked.
        for issued in &mut self.books().issued {
            issued.revoked |= issued.token == token && issued.client_id == client_id;
        }
        Ok(())
    }
}

fn field(request: &Recorded, name: &str) -> Option<String> {
    request
        .parameters()
        .into_iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
}

/// The client id of a request with a valid client secret.
fn client(request: &Recorded) -> Result<String, &'static str> {
    let client_id = field(request, "client_id").ok_or("invalid_client")?;
    let secret = field(request, "client_secret").unwrap_or_default();
    is_sound(&secret, &client_id)
        .filter(|sound| *sound)
        .map(|_| client_id)
        .ok_or("invalid_client")
}

fn is_sound(secret: &str, client_id: &str) -> Option<bool> {
    let (message, signature) = secret.rsplit_once('.')?;
    let der: String = private_key()
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let ours = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        &STANDARD.decode(der).unwrap(),
    )
    .unwrap();
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, ours.public_key().as_ref());
    public
        .verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?)
        .ok()?;
    let part =
        |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
    let (header, claims) = message.split_once('.')?;
    let header = part(header)?;
    let claims = part(claims)?;
    let from = claims["iat"].as_i64()?;
    let until = claims["exp"].as_i64()?;
    Some(
        header == json!({ "alg": "ES256", "kid": KEY_ID })
            && claims["iss"] == TEAM_ID
            && claims["aud"] == APPLE
            && claims["sub"] == client_id
            && from <= now() + 60
            && until > now()
            && until - from <= LONGEST,
    )
}
