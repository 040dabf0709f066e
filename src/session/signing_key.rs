//! The key that signs access tokens: ES256 (RFC 7518 §3.4), made at the first start and shared by
//! all instances through the database, where its private part lies sealed.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
    Signature,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sqlx::PgPool;

use super::sealed::{Seal, Unopened};
use crate::secret::Secret;
use crate::store;
use crate::store::signing_keys::{self, SigningKeyRow};

const PURPOSE: &str = "signing keys";

/// A key pair with its id.
#[derive(Debug)]
pub struct SigningKey {
    /// `kid`: the key's JWK thumbprint (RFC 7638).
    pub kid: String,
    pair: EcdsaKeyPair,
}

/// No key can be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stored key was sealed with another secret.
    #[error("the signing key in the database {0}; start with the `secret_key` it was made with")]
    Sealed(#[from] Unopened),
    /// The crypto backend refused.
    #[error("the signing key cannot be made or read")]
    Backend,
    /// The database failed.
    #[error("the signing key cannot be loaded: {0}")]
    Store(#[from] store::Error),
}

impl SigningKey {
    /// The key that signs now; made and stored if there is none yet.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn load(pool: &PgPool, secret_key: &Secret<String>) -> Result<Self, Error> {
        let seal = Seal::new(secret_key, PURPOSE)?;
        if let Some(row) = signing_keys::current(pool).await? {
            return Self::open(&seal, &row);
        }
        signing_keys::insert_first(pool, &Self::generate(&seal)?).await?;
        // Another instance may have come first: the stored key counts.
        let row = signing_keys::current(pool).await?.ok_or(Error::Backend)?;
        Self::open(&seal, &row)
    }

    /// Signs with ECDSA on P-256 and SHA-256, in the fixed-length form of JWS.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Error> {
        self.pair.sign(&SystemRandom::new(), message).map_err(|_| Error::Backend)
    }

    /// Verifies what [`SigningKey::sign`] signed.
    ///
    /// # Errors
    /// It did not.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        let point = self.pair.public_key().as_ref();
        ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .map_err(|_| Error::Backend)?
            .verify_sig(message, signature)
            .map_err(|_| Error::Backend)
    }

    fn generate(seal: &Seal) -> Result<SigningKeyRow, Error> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|_| Error::Backend)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref())
            .map_err(|_| Error::Backend)?;
        let public_key = pair.public_key().as_ref().to_vec();
        let kid = thumbprint(&public_key).ok_or(Error::Backend)?;
        let sealed_private_key = seal.seal(&kid, pkcs8.as_ref().to_vec())?;
        Ok(SigningKeyRow { kid, public_key, sealed_private_key })
    }

    fn open(seal: &Seal, row: &SigningKeyRow) -> Result<Self, Error> {
        let pkcs8 = seal.open(&row.kid, &row.sealed_private_key)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8).map_err(|_| Error::Backend)?;
        Ok(Self { kid: row.kid.clone(), pair })
    }
}

/// The JWK thumbprint of an uncompressed P-256 point (RFC 7638 §3).
fn thumbprint(point: &[u8]) -> Option<String> {
    let [4, coordinates @ ..] = point else { return None };
    let (x, y) = coordinates.split_at_checked(32)?;
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
    Some(URL_SAFE_NO_PAD.encode(digest(&SHA256, jwk.as_bytes())))
}
