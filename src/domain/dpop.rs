//! `DPoP` proofs (RFC 9449): a signed statement about one request, which proves that its sender has a private key. The
//! key's thumbprint binds a session to the device.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use url::{Position, Url};

use super::json::Object;
use super::jwk::{Algorithm, Key};

/// The JWK thumbprint of a public key (RFC 7638), with SHA-256.
pub type Thumbprint = [u8; 32];

/// The accepted algorithms, which Android Keystore, the Secure Enclave and `WebCrypto` support.
pub const ALGORITHMS: [&str; 2] = ["ES256", "EdDSA"];

/// The longest accepted proof, in bytes.
const MAX_LENGTH: usize = 4096;
/// The members of private and symmetric keys (RFC 7518 §6.2.2, §6.3.2 and §6.4, RFC 8037 §2).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The rule for the binding of sessions to the keys of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// New sessions are not bound, and the header of a sign-in is ignored.
    Off,
    /// A sign-in with a proof opens a bound session.
    #[default]
    Optional,
    /// A sign-in without a proof is refused.
    Required,
}

/// The reason why a request does not prove its key, by its name in events and metrics.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(prefix = "proof_", serialize_all = "snake_case")]
pub enum Refused {
    Missing,
    Repeated,
    Malformed,
    Type,
    Algorithm,
    Key,
    PrivateKey,
    Claims,
    Method,
    Url,
    AccessToken,
    /// The nonce is absent, not from this service, or too old. The client gets another one and
    /// repeats the request.
    Nonce,
    Signature,
    OtherKey,
    Bearer,
    Unbound,
}

impl Refused {
    /// Returns the cause in words for developers and staff.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "the DPoP header is missing",
            Self::Repeated => "there is more than one DPoP header",
            Self::Malformed => "the proof is not one JWT of at most 4096 bytes",
            Self::Type => "the proof's type is not dpop+jwt",
            Self::Algorithm => "the proof's algorithm is not ES256 or EdDSA",
            Self::Key => "the proof's key is no public key for its algorithm",
            Self::PrivateKey => "the proof contains a private key",
            Self::Claims => "the proof lacks jti, htm, htu or iat, or one of them is not valid",
            Self::Method => "the proof is for another method (htm)",
            Self::Url => "the proof is for another URL than the public one of the request (htu)",
            Self::AccessToken => "the proof is for another access token (ath)",
            Self::Nonce => {
                "the proof's nonce is missing or too old: repeat the request with the one of the DPoP-Nonce header"
            }
            Self::Signature => "the proof's signature is not by its key",
            Self::OtherKey => "the proof is by another key than the session's",
            Self::Bearer => {
                "the access token is bound to a key, so it needs a proof and the scheme DPoP"
            }
            Self::Unbound => "the access token is not bound to a key, so its scheme is Bearer",
        }
    }

    /// Returns the section of RFC 9449 with the rule.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Type | Self::Key | Self::Claims => "4.2",
            Self::Nonce => "8",
            Self::Missing | Self::OtherKey | Self::Bearer | Self::Unbound => "7.1",
            _ => "4.3",
        }
    }
}

/// The request for which a proof is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub method: &'a str,
    /// The URL that clients use, without the query.
    pub url: &'a str,
    pub access_token: Option<&'a str>,
}

/// Verifies the one proof of a request (RFC 9449 §4.3), and returns the thumbprint of its key.
/// `iat` is not compared with a clock: the nonce shows when the proof was made.
pub fn verify(
    proof: &str,
    shown: Shown<'_>,
    is_fresh: impl FnOnce(&str) -> bool,
) -> Result<Thumbprint, Refused> {
    let (message, signature) = proof.rsplit_once('.').ok_or(Refused::Malformed)?;
    let (header, claims) = message.split_once('.').ok_or(Refused::Malformed)?;
    let object = |part| Object::parse(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
    let parts = (proof.len() <= MAX_LENGTH)
        .then(|| object(header).zip(object(claims)))
        .flatten();
    let (header, claims) = parts.ok_or(Refused::Malformed)?;
    let signature = URL_SAFE_NO_PAD
        .decode(signature)
        .map_err(|_| Refused::Malformed)?;
    if header.str("typ") != Some("dpop+jwt") {
        return Err(Refused::Type);
    }
    let Some(Ok(algorithm @ (Algorithm::Es256 | Algorithm::EdDsa))) =
        header.str("alg").map(str::parse)
    else {
        return Err(Refused::Algorithm);
    };
    if header.has("crit") {
        return Err(Refused::Malformed);
    }
    let jwk = header.get("jwk").ok_or(Refused::Key)?;
    if PRIVATE.iter().any(|member| jwk.get(member).is_some()) {
        return Err(Refused::PrivateKey);
    }
    let key = Key::read(jwk)
        .filter(|key| key.signs_with(algorithm))
        .ok_or(Refused::Key)?;
    check_claims(&claims, shown)?;
    if !claims.str("nonce").is_some_and(is_fresh) {
        return Err(Refused::Nonce);
    }
    if !key.verifies(algorithm, message.as_bytes(), &signature) {
        return Err(Refused::Signature);
    }
    Ok(thumbprint(jwk))
}

fn check_claims(claims: &Object, shown: Shown<'_>) -> Result<(), Refused> {
    let has_id = claims.str("jti").is_some_and(|jti| !jti.is_empty());
    let sound = has_id && claims.get("iat").is_some_and(Value::is_number);
    let (method, url) = claims
        .str("htm")
        .zip(claims.str("htu"))
        .filter(|_| sound)
        .ok_or(Refused::Claims)?;
    // The framework answers HEAD by the routes of GET.
    if method != shown.method && (method, shown.method) != ("HEAD", "GET") {
        return Err(Refused::Method);
    }
    if !is_same(url, shown.url) {
        return Err(Refused::Url);
    }
    let hash = |token: &str| URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes()));
    match shown.access_token {
        Some(token) if claims.str("ath") != Some(&hash(token)) => Err(Refused::AccessToken),
        _ => Ok(()),
    }
}

/// Compares URLs without query and fragment, in their normal form (RFC 9449 §4.3, RFC 3986 §6.2.2
/// and §6.2.3).
fn is_same(claimed: &str, shown: &str) -> bool {
    let normal = |url: &str| {
        Url::parse(url)
            .ok()
            .map(|url| url[..Position::AfterPath].to_owned())
    };
    claimed == shown || normal(claimed).is_some_and(|claimed| Some(claimed) == normal(shown))
}

/// Returns the thumbprint of a key that [`Key::read`] has accepted, so its coordinates are in their
/// only encoding.
fn thumbprint(jwk: &Value) -> Thumbprint {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str).unwrap_or_default();
    let crv = text("crv");
    let kty = text("kty");
    let x = text("x");
    let y = text("y");
    let y = if kty == "EC" {
        format!(r#","y":"{y}""#)
    } else {
        String::new()
    };
    let members = format!(r#"{{"crv":"{crv}","kty":"{kty}","x":"{x}"{y}}}"#);
    digest(&SHA256, members.as_bytes())
        .as_ref()
        .try_into()
        .unwrap_or_default()
}
