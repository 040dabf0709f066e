//! A provider's public keys (RFC 7517, RFC 7518 §6, RFC 8037).

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::json::Object;

/// Accepted sizes of an RSA modulus, in bytes.
const MODULUS: std::ops::RangeInclusive<usize> = 256..=1024;
/// The longest accepted RSA exponent, in bytes. Larger ones only make a verification slow.
const MAX_EXPONENT: usize = 4;

/// The accepted signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1, RFC 9864 §2.2): neither `none` nor any with a shared
/// secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    #[strum(to_string = "EdDSA", serialize = "Ed25519")]
    EdDsa,
}

impl Algorithm {
    /// The names of all of them, for messages.
    pub const NAMES: &str = "RS256, PS256, ES256 and EdDSA";

    /// The keys that they are used with, for people.
    pub const KEYS: &str = "RSA of 2048 to 8192 bits, P-256 and Ed25519";
}

/// A public key with its algorithm. An RSA key that names none may be used with either padding.
#[derive(Debug)]
pub struct Key {
    /// `kid`.
    pub id: Option<String>,
    /// The issuer that it signs for, if the provider restricts it (Microsoft).
    pub issuer: Option<String>,
    public: Vec<(Algorithm, ParsedPublicKey)>,
}

/// The document holds no usable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no usable key (for {})", Algorithm::NAMES)]
pub struct NoKeys;

/// The usable keys of a key set; never empty.
#[derive(Debug)]
pub struct KeySet {
    usable: Vec<Key>,
    /// The `kid` of each that is not.
    left_out: Vec<String>,
}

impl KeySet {
    /// Reads a JWK Set (RFC 7517 §5). Keys for other uses, of other types or with invalid members are
    /// ignored, as the standard requires.
    pub fn read(document: &Object) -> Result<Self, NoKeys> {
        let Some(Value::Array(keys)) = document.get("keys") else { return Err(NoKeys) };
        let (mut usable, mut left_out) = (Vec::new(), Vec::new());
        for jwk in keys {
            match Key::read(jwk) {
                Some(key) => usable.push(key),
                None => left_out.extend(jwk.get("kid").and_then(Value::as_str).map(str::to_owned)),
            }
        }
        if usable.is_empty() { Err(NoKeys) } else { Ok(Self { usable, left_out }) }
    }

    pub fn keys(&self) -> &[Key] {
        &self.usable
    }

    /// Returns true when a key of that name is published and was left out.
    pub fn leaves_out(&self, id: &str) -> bool {
        self.left_out.iter().any(|left_out| left_out == id)
    }
}

impl Key {
    pub(super) fn read(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        // A member of the wrong type makes the key invalid. It does not count as absent.
        let sound = |name: &str| jwk.get(name).is_none_or(Value::is_string);
        if !(sound("kid") && sound("use") && sound("alg") && sound("issuer")) {
            return None;
        }
        let verifies = match jwk.get("key_ops") {
            None => true,
            Some(Value::Array(operations)) => operations.iter().any(|operation| operation == "verify"),
            Some(_) => false,
        };
        if !verifies || text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let bytes = |name| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let named = match text("alg") {
            None => None,
            Some(name) => Some(name.parse().ok()?),
        };
        let public = match (text("kty")?, named) {
            ("RSA", named @ (None | Some(Algorithm::Rs256 | Algorithm::Ps256))) => {
                let (n, e) = (bytes("n")?, bytes("e")?);
                [
                    (Algorithm::Rs256, &RSA_PKCS1_2048_8192_SHA256),
                    (Algorithm::Ps256, &RSA_PSS_2048_8192_SHA256),
                ]
                .into_iter()
                .filter(|(algorithm, _)| named.is_none_or(|named| named == *algorithm))
                .map(|(algorithm, parameters)| Some((algorithm, rsa(&n, &e, parameters)?)))
                .collect::<Option<_>>()?
            }
            ("EC", None | Some(Algorithm::Es256)) if text("crv") == Some("P-256") => {
                vec![(Algorithm::Es256, p256(&bytes("x")?, &bytes("y")?)?)]
            }
            ("OKP", None | Some(Algorithm::EdDsa)) if text("crv") == Some("Ed25519") => {
                vec![(Algorithm::EdDsa, ParsedPublicKey::new(&ED25519, bytes("x")?).ok()?)]
            }
            _ => return None,
        };
        let owned = |name| text(name).map(str::to_owned);
        Some(Self { id: owned("kid"), issuer: owned("issuer"), public })
    }

    /// Returns true if the key may be used with that algorithm. The token has no say in it.
    pub fn signs_with(&self, algorithm: Algorithm) -> bool {
        self.public.iter().any(|(own, _)| *own == algorithm)
    }

    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let mut public = self.public.iter().filter(|(own, _)| *own == algorithm);
        public.any(|(_, public)| public.verify_sig(message, signature).is_ok())
    }
}

fn rsa(
    n: &[u8],
    e: &[u8],
    parameters: &'static aws_lc_rs::signature::RsaParameters,
) -> Option<ParsedPublicKey> {
    // Some providers write a leading zero octet, which RFC 7518 §6.3.1.1 forbids.
    let bare = |number: &[u8]| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number[zeros..].to_vec()
    };
    let (n, e) = (bare(n), bare(e));
    // An exponent is odd (RFC 8017 §3.1); with 1 every message would be its own signature.
    let sound = e.len() <= MAX_EXPONENT && e != [1] && e.last().is_some_and(|last| last % 2 == 1);
    if !MODULUS.contains(&n.len()) || !sound {
        return None;
    }
    RsaPublicKeyComponents { n, e }.to_parsed_public_key(parameters).ok()
}

fn p256(x: &[u8], y: &[u8]) -> Option<ParsedPublicKey> {
    // An uncompressed point (SEC 1 §2.3.3).
    let point = [&[4], x, y].concat();
    (x.len() == 32 && y.len() == 32)
        .then(|| ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok())
        .flatten()
}
