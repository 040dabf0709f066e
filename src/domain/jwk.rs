//! A provider's public keys (RFC 7517, RFC 7518 §6, RFC 8037).

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    EcdsaVerificationAlgorithm, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::json::Object;

/// Accepted sizes of an RSA modulus, in bytes.
const MODULUS: std::ops::RangeInclusive<usize> = 256..=1024;
/// The longest accepted RSA exponent, in bytes. Larger ones only make a verification slow.
const MAX_EXPONENT: usize = 4;

/// The accepted signature algorithms: the public-key algorithms of RFC 7518 §3.1, and `EdDSA` with
/// Ed25519 (RFC 8037 §3.1, RFC 9864 §2.2). `none` and shared secrets are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, SHA-384 and SHA-512.
    Rs256,
    Rs384,
    Rs512,
    /// RSASSA-PSS with the same.
    Ps256,
    Ps384,
    Ps512,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// ECDSA with P-521 and SHA-512.
    Es512,
    #[strum(to_string = "EdDSA", serialize = "Ed25519")]
    EdDsa,
}

impl Algorithm {
    /// The names of all algorithms, for error messages.
    pub const NAMES: &str =
        "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA";

    /// The supported keys, for error messages.
    pub const KEYS: &str = "RSA of 2048 to 8192 bits, P-256, P-384, P-521 and Ed25519";

    /// The algorithms of an RSA key.
    const RSA: [(Self, &'static RsaParameters); 6] = [
        (Self::Rs256, &RSA_PKCS1_2048_8192_SHA256),
        (Self::Rs384, &RSA_PKCS1_2048_8192_SHA384),
        (Self::Rs512, &RSA_PKCS1_2048_8192_SHA512),
        (Self::Ps256, &RSA_PSS_2048_8192_SHA256),
        (Self::Ps384, &RSA_PSS_2048_8192_SHA384),
        (Self::Ps512, &RSA_PSS_2048_8192_SHA512),
    ];

    /// Returns the one algorithm of a curve (RFC 7518 §3.4), and the length of a coordinate in
    /// bytes (§6.2.1.2).
    fn of_curve(name: &str) -> Option<(Self, &'static EcdsaVerificationAlgorithm, usize)> {
        match name {
            "P-256" => Some((Self::Es256, &ECDSA_P256_SHA256_FIXED, 32)),
            "P-384" => Some((Self::Es384, &ECDSA_P384_SHA384_FIXED, 48)),
            "P-521" => Some((Self::Es512, &ECDSA_P521_SHA512_FIXED, 66)),
            _ => None,
        }
    }
}

/// A public key with its algorithm. An RSA key without `alg` may be used with all RSA algorithms.
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
    /// The `kid`s of the unusable keys.
    left_out: Vec<String>,
}

impl KeySet {
    /// Reads a JWK Set (RFC 7517 §5). Keys for other uses, of other types or with invalid members
    /// are ignored, as the standard requires.
    pub fn read(document: &Object) -> Result<Self, NoKeys> {
        let Some(Value::Array(keys)) = document.get("keys") else {
            return Err(NoKeys);
        };
        let mut usable = Vec::new();
        let mut left_out = Vec::new();
        for jwk in keys {
            match Key::read(jwk) {
                Some(key) => usable.push(key),
                None => left_out.extend(jwk.get("kid").and_then(Value::as_str).map(str::to_owned)),
            }
        }
        if usable.is_empty() {
            Err(NoKeys)
        } else {
            Ok(Self { usable, left_out })
        }
    }

    pub fn keys(&self) -> &[Key] {
        &self.usable
    }

    /// Returns true if a key of that name is published but unusable.
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
            Some(Value::Array(operations)) => {
                operations.iter().any(|operation| operation == "verify")
            }
            Some(_) => false,
        };
        if !verifies || text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let bytes = |name| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let named: Option<Algorithm> = match text("alg") {
            None => None,
            Some(name) => Some(name.parse().ok()?),
        };
        let may_be = |algorithm: Algorithm| named.is_none_or(|named| named == algorithm);
        let public: Vec<_> = match text("kty")? {
            "RSA" => {
                let n = bytes("n")?;
                let e = bytes("e")?;
                let named = Algorithm::RSA
                    .into_iter()
                    .filter(|(algorithm, _)| may_be(*algorithm));
                let parsed = named
                    .map(|(algorithm, parameters)| Some((algorithm, rsa(&n, &e, parameters)?)));
                parsed.collect::<Option<_>>()?
            }
            "EC" => {
                let (algorithm, verification, length) = Algorithm::of_curve(text("crv")?)?;
                let key = point(&bytes("x")?, &bytes("y")?, verification, length)?;
                Vec::from_iter(may_be(algorithm).then_some((algorithm, key)))
            }
            "OKP" if text("crv") == Some("Ed25519") => {
                let key = ParsedPublicKey::new(&ED25519, bytes("x")?).ok()?;
                Vec::from_iter(may_be(Algorithm::EdDsa).then_some((Algorithm::EdDsa, key)))
            }
            _ => return None,
        };
        if public.is_empty() {
            return None;
        }
        let owned = |name| text(name).map(str::to_owned);
        Some(Self {
            id: owned("kid"),
            issuer: owned("issuer"),
            public,
        })
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

fn rsa(n: &[u8], e: &[u8], parameters: &'static RsaParameters) -> Option<ParsedPublicKey> {
    // Some providers write a leading zero octet, which RFC 7518 §6.3.1.1 forbids.
    let bare = |number: &[u8]| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number[zeros..].to_vec()
    };
    let n = bare(n);
    let e = bare(e);
    // An exponent is odd (RFC 8017 §3.1); with 1 every message would be its own signature.
    let sound = e.len() <= MAX_EXPONENT && e != [1] && e.last().is_some_and(|last| last % 2 == 1);
    if !MODULUS.contains(&n.len()) || !sound {
        return None;
    }
    RsaPublicKeyComponents { n, e }
        .to_parsed_public_key(parameters)
        .ok()
}

fn point(
    x: &[u8],
    y: &[u8],
    verification: &'static EcdsaVerificationAlgorithm,
    length: usize,
) -> Option<ParsedPublicKey> {
    if x.len() != length || y.len() != length {
        return None;
    }
    // An uncompressed point (SEC 1 §2.3.3).
    ParsedPublicKey::new(verification, [&[4], x, y].concat()).ok()
}
