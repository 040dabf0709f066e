//! The key that signs the provider's tokens: RS256 (RFC 7518 §3.3), as Google's. It is kept in a
//! file, so that tokens stay valid over a restart of the server.

use std::io;
use std::ops::Range;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::dev::error::Error;
use crate::dev::files;

const FILE: &str = "identity-provider.pkcs8";
/// The length of a modulus with 2048 bits, in bytes.
const LENGTH: usize = 256;
/// The place of the modulus in the DER form of a public key (RFC 8017 §A.1.1).
const MODULUS: Range<usize> = 9..9 + LENGTH;

#[derive(Debug)]
pub(super) struct Key {
    pair: KeyPair,
    /// `kid`.
    pub id: String,
}

impl Key {
    pub fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let pkcs8 = files::read_or_create(&path, || generate().map_err(io::Error::other))?;
        let pair = KeyPair::from_pkcs8(&pkcs8)
            .ok()
            .filter(|pair| pair.public_modulus_len() == LENGTH);
        let pair = pair.ok_or(Error::Key(path))?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, pair.public_key().as_ref()));
        Ok(Self { pair, id })
    }

    /// Returns the public half as a JWK (RFC 7517 §4, RFC 7518 §6.3.1). Its exponent is 65537, as
    /// of every key that is generated here.
    pub fn jwk(&self) -> Value {
        let modulus = URL_SAFE_NO_PAD.encode(&self.pair.public_key().as_ref()[MODULUS]);
        json!({ "kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id, "n": modulus, "e": "AQAB" })
    }

    pub fn sign(&self, message: &[u8]) -> [u8; LENGTH] {
        let mut signature = [0; LENGTH];
        let signed = self.pair.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            message,
            &mut signature,
        );
        signed.expect("an RSA key signs any message");
        signature
    }
}

fn generate() -> Result<Vec<u8>, Unspecified> {
    let pkcs8: Pkcs8V1Der = KeyPair::generate(KeySize::Rsa2048)?.as_der()?;
    Ok(pkcs8.as_ref().to_vec())
}
