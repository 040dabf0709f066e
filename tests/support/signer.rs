//! Keys that sign tokens, and their public halves as providers publish them.

use std::sync::OnceLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaSignatureEncoding,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::token::with;

/// One of the tests' keys, which are shared: making RSA keys for every test is too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    Rsa,
    OtherRsa,
    /// The first RSA key with the other padding, and either padding with the longer hashes.
    Pss,
    Rsa384,
    Rsa512,
    Pss384,
    Pss512,
    Ec,
    OtherEc,
    Ec384,
    Ec521,
    Ed,
}

struct Keys {
    rsa: [RsaKeyPair; 2],
    /// Two of P-256, one of P-384, one of P-521.
    ec: [EcdsaKeyPair; 4],
    ed: Ed25519KeyPair,
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let rsa = || RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let ec = |curve: &'static EcdsaSigningAlgorithm| EcdsaKeyPair::generate(curve).unwrap();
        let ec = [
            ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ec(&ECDSA_P521_SHA512_FIXED_SIGNING),
        ];
        Keys {
            rsa: [rsa(), rsa()],
            ec,
            ed: Ed25519KeyPair::generate().unwrap(),
        }
    })
}

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    pub const ALL: [Self; 12] = [
        Self::Rsa,
        Self::OtherRsa,
        Self::Pss,
        Self::Rsa384,
        Self::Rsa512,
        Self::Pss384,
        Self::Pss512,
        Self::Ec,
        Self::OtherEc,
        Self::Ec384,
        Self::Ec521,
        Self::Ed,
    ];

    pub fn alg(self) -> &'static str {
        match self {
            Self::Rsa | Self::OtherRsa => "RS256",
            Self::Rsa384 => "RS384",
            Self::Rsa512 => "RS512",
            Self::Pss => "PS256",
            Self::Pss384 => "PS384",
            Self::Pss512 => "PS512",
            Self::Ec | Self::OtherEc => "ES256",
            Self::Ec384 => "ES384",
            Self::Ec521 => "ES512",
            Self::Ed => "EdDSA",
        }
    }

    pub fn kid(self) -> &'static str {
        match self {
            Self::Rsa => "rsa-1",
            Self::OtherRsa => "rsa-2",
            Self::Rsa384 => "rsa-384",
            Self::Rsa512 => "rsa-512",
            Self::Pss => "pss-1",
            Self::Pss384 => "pss-384",
            Self::Pss512 => "pss-512",
            Self::Ec => "ec-1",
            Self::OtherEc => "ec-2",
            Self::Ec384 => "ec-384",
            Self::Ec521 => "ec-521",
            Self::Ed => "ed-1",
        }
    }

    /// The public half (RFC 7517).
    pub fn jwk(self) -> Value {
        let mut jwk = if let Some((pair, curve)) = self.ec() {
            let point = &pair.public_key().as_ref()[1..];
            let (x, y) = point.split_at(point.len() / 2);
            json!({ "kty": "EC", "crv": curve, "x": base64(x), "y": base64(y) })
        } else if self == Self::Ed {
            json!({ "kty": "OKP", "crv": "Ed25519", "x": base64(keys().ed.public_key()) })
        } else {
            let (n, e) = self.modulus_and_exponent();
            json!({ "kty": "RSA", "n": base64(n), "e": base64(e) })
        };
        jwk["kid"] = self.kid().into();
        jwk["use"] = "sig".into();
        jwk["alg"] = self.alg().into();
        jwk
    }

    /// The elliptic-curve key with the name of its curve.
    fn ec(self) -> Option<(&'static EcdsaKeyPair, &'static str)> {
        let [first, other, longer, longest] = &keys().ec;
        match self {
            Self::Ec => Some((first, "P-256")),
            Self::OtherEc => Some((other, "P-256")),
            Self::Ec384 => Some((longer, "P-384")),
            Self::Ec521 => Some((longest, "P-521")),
            _ => None,
        }
    }

    fn rsa(self) -> &'static RsaKeyPair {
        &keys().rsa[usize::from(self == Self::OtherRsa)]
    }

    /// The public key in DER. Attackers use it as the secret of an HMAC (algorithm confusion).
    pub fn public_der(self) -> Vec<u8> {
        let der: PublicKeyX509Der<'_> = self.rsa().public_key().as_der().unwrap();
        der.as_ref().to_vec()
    }

    /// Every key made here has 2048 bits and the exponent 65537; nothing else need be understood.
    fn modulus_and_exponent(self) -> (&'static [u8], &'static [u8]) {
        let der = self.rsa().public_key().as_ref();
        (&der[9..265], &der[267..270])
    }

    pub fn sign(self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        if let Some((pair, _)) = self.ec() {
            return pair.sign(&random, message).unwrap().as_ref().to_vec();
        }
        let padding: &'static RsaSignatureEncoding = match self {
            Self::Rsa384 => &RSA_PKCS1_SHA384,
            Self::Rsa512 => &RSA_PKCS1_SHA512,
            Self::Pss => &RSA_PSS_SHA256,
            Self::Pss384 => &RSA_PSS_SHA384,
            Self::Pss512 => &RSA_PSS_SHA512,
            Self::Ed => return keys().ed.sign(message).as_ref().to_vec(),
            _ => &RSA_PKCS1_SHA256,
        };
        let mut signature = vec![0; 256];
        self.rsa()
            .sign(padding, &random, message, &mut signature)
            .unwrap();
        signature
    }

    /// The usual header of this key's tokens.
    pub fn header(self) -> Value {
        json!({ "alg": self.alg(), "typ": "JWT", "kid": self.kid() })
    }

    /// The usual header with some members replaced; `null` removes a member.
    pub fn header_with(self, changes: &Value) -> Value {
        with(self.header(), changes)
    }

    pub fn token(self, claims: &Value) -> String {
        self.token_with(&self.header(), claims)
    }

    /// A token with that header, signed by this key whatever the header says.
    pub fn token_with(self, header: &Value, claims: &Value) -> String {
        self.token_of(&header.to_string(), &claims.to_string())
    }

    /// A token of those texts, which need not be JSON.
    pub fn token_of(self, header: &str, claims: &str) -> String {
        signed(header, claims, |message| self.sign(message))
    }
}

/// A token with the signature that `sign` makes.
pub fn signed(header: &str, claims: &str, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", base64(header), base64(claims));
    let signature = base64(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

pub fn hs256(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message)
        .as_ref()
        .to_vec()
}

pub fn jwks(keys: &[Value]) -> Value {
    json!({ "keys": keys })
}
