//! A key that signs access tokens: ES256 (RFC 7518 §3.4). [`super::rotation`] decides when it
//! signs.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    ParsedPublicKey, Signature,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::seal::{Seal, Unopened};
use super::store::{NewKey, StoredKey};
use crate::database;

pub struct SigningKey {
    /// `kid`: the key's JWK thumbprint (RFC 7638).
    pub kid: String,
    pub jwk: Jwk,
    pair: EcdsaKeyPair,
    public: ParsedPublicKey,
}

/// A public key as a JSON Web Key (RFC 7517 §4, RFC 7518 §6.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Jwk {
    kty: &'static str,
    crv: &'static str,
    x: String,
    y: String,
    #[serde(rename = "use")]
    use_: &'static str,
    alg: &'static str,
    kid: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "a stored signing key {0}; set the original `secret_key`, or replace the keys with \
         `vestibule keys rotate --now --new-secret-key`"
    )]
    Sealed(#[from] Unopened),
    #[error("a signing key cannot be generated, parsed or used")]
    Backend,
    #[error("the signing keys cannot be loaded: {0}")]
    Store(#[from] database::Error),
}

impl SigningKey {
    pub fn generate(seal: &Seal) -> Result<NewKey, Error> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|_| Error::Backend)?;
        let key = Self::from_pkcs8(pkcs8.as_ref())?;
        let sealed_private_key = seal.seal(&key.kid, pkcs8.as_ref().to_vec())?;
        Ok(NewKey {
            kid: key.kid,
            public_key: key.pair.public_key().as_ref().to_vec(),
            sealed_private_key,
        })
    }

    /// Opens a stored key. It reads only the sealed part, so an attacker who can write to the
    /// table, but does not have `secret_key`, cannot insert a key.
    pub fn open(seal: &Seal, stored: &StoredKey) -> Result<Self, Error> {
        let key = Self::from_pkcs8(&seal.open(&stored.kid, &stored.sealed_private_key)?)?;
        if key.kid == stored.kid {
            Ok(key)
        } else {
            Err(Unopened.into())
        }
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, Error> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8)
            .map_err(|_| Error::Backend)?;
        let public = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref())
            .map_err(|_| Error::Backend)?;
        // The point is uncompressed (SEC 1 §2.3.3).
        let [4, point @ ..] = pair.public_key().as_ref() else {
            return Err(Error::Backend);
        };
        let (x, y) = point.split_at_checked(32).ok_or(Error::Backend)?;
        let jwk = Jwk::new(URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        Ok(Self {
            kid: jwk.kid.clone(),
            jwk,
            pair,
            public,
        })
    }

    /// Signs with ECDSA on P-256 and SHA-256, in the fixed-length form of JWS.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Error> {
        self.pair
            .sign(&SystemRandom::new(), message)
            .map_err(|_| Error::Backend)
    }

    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        self.public
            .verify_sig(message, signature)
            .map_err(|_| Error::Backend)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.kid).finish()
    }
}

impl Jwk {
    fn new(x: String, y: String) -> Self {
        let members = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let kid = URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()));
        Self {
            kty: "EC",
            crv: "P-256",
            x,
            y,
            use_: "sig",
            alg: "ES256",
            kid,
        }
    }
}
