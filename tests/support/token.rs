//! Tokens and claims. The tests' provider knows each token by its text, so that signatures are not
//! needed. The tests of the development provider cover real signatures.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The client id that the service is configured with.
pub const CLIENT_ID: &str = "client-1.example";
/// The issuer of the default provider.
pub const ISSUER: &str = "https://issuer.example";

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Seconds since the epoch.
pub fn now() -> i64 {
    vestibule::clock::now()
}

/// Valid claims of that subject. All values are spelled as Google spells them, except numbers.
pub fn claims(subject: &str, email: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": CLIENT_ID, "azp": CLIENT_ID, "sub": subject,
        "email": email, "email_verified": "true", "name": "Ada Lovelace",
        "picture": "https://pictures.example/ada", "iat": now().to_string(), "exp": (now() + 3600).to_string(),
    })
}

/// The same claims with some replaced; `null` removes one.
pub fn with(mut claims: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

/// The same claims with an unverified address.
pub fn unverified(claims: Value) -> Value {
    with(claims, &json!({ "email_verified": "false" }))
}

/// A token with that header and payload, and an invalid signature.
pub fn encode(header: &str, payload: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(header), part(payload), part("signature"))
}

/// A new token without useful content.
pub fn opaque() -> String {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    encode(
        r#"{"alg":"RS256","typ":"JWT"}"#,
        &json!({ "jti": number }).to_string(),
    )
}

/// Valid claims of one of the further providers.
pub fn at(provider: &str, subject: &str, email: &str) -> Value {
    with(
        claims(subject, email),
        &json!({ "iss": format!("https://{provider}.example") }),
    )
}
