//! The key that signs the provider's tokens: RS256 (RFC 7518 §3.3), as Google's. It is kept in a file, so that
//! tokens stay valid over a restart of the server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use uuid::Uuid;

const FILE: &str = "identity-provider.pkcs8";

const MODULUS_LENGTH: usize = 256;
const EXPONENT: [u8; 3] = [1, 0, 1];

/// The bytes before and after the modulus in the DER form of a public key (RFC 8017 §A.1.1) with 2048 bits and the
/// exponent 65537. Every key made here has that form, so no DER parser is needed.
const BEFORE_MODULUS: [u8; 9] = [0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00];
const AFTER_MODULUS: [u8; 5] = [0x02, 0x03, EXPONENT[0], EXPONENT[1], EXPONENT[2]];

/// The reason why the provider has no key to sign with, in one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key file exists but cannot be read.
    #[error("the development provider's key `{}` cannot be read: {source}; correct its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The key file cannot be written.
    #[error("the development provider's key `{}` cannot be written: {source}; make its folder writable", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not hold a key of this program.
    #[error("`{}` is not a key that this program made; delete it, and the next start makes a new one", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The cryptography library failed.
    #[error("the development provider's key cannot be made")]
    Backend,
}

/// The signature could not be made.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the development provider's key does not sign")]
pub(super) struct Unsigned;

/// A key pair with its public half in published form.
#[derive(Debug)]
pub(super) struct Key {
    pair: KeyPair,
    /// The public half.
    pub jwk: Jwk,
}

/// A public RSA key as a JWK (RFC 7517 §4, RFC 7518 §6.3.1).
#[derive(Debug, Serialize)]
pub(super) struct Jwk {
    kty: &'static str,
    #[serde(rename = "use")]
    use_: &'static str,
    alg: &'static str,
    /// The key's JWK thumbprint (RFC 7638).
    pub kid: String,
    n: String,
    e: String,
}

impl Key {
    /// Loads the key in a directory, or creates one if there is none.
    pub fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        match fs::read(&path) {
            Ok(pkcs8) => {
                let pair = KeyPair::from_pkcs8(&pkcs8).ok();
                pair.and_then(Self::new).ok_or(Error::Foreign { path })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(directory, path),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    fn make(directory: &Path, path: PathBuf) -> Result<Self, Error> {
        let pair = KeyPair::generate(KeySize::Rsa2048).map_err(|_| Error::Backend)?;
        let pkcs8: Pkcs8V1Der = pair.as_der().map_err(|_| Error::Backend)?;
        let written = fs::create_dir_all(directory).and_then(|()| write(&path, pkcs8.as_ref()));
        written.map_err(|source| Error::Write { path, source })?;
        Self::new(pair).ok_or(Error::Backend)
    }

    fn new(pair: KeyPair) -> Option<Self> {
        let modulus = modulus(pair.public_key().as_ref())?;
        let (n, e) = (URL_SAFE_NO_PAD.encode(modulus), URL_SAFE_NO_PAD.encode(EXPONENT));
        let kid = thumbprint(&n, &e);
        Some(Self { pair, jwk: Jwk { kty: "RSA", use_: "sig", alg: "RS256", kid, n, e } })
    }

    /// Signs with RSASSA-PKCS1-v1_5 and SHA-256.
    pub fn sign(&self, message: &[u8]) -> Result<[u8; MODULUS_LENGTH], Unsigned> {
        let mut signature = [0; MODULUS_LENGTH];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
            .map_err(|_| Unsigned)?;
        Ok(signature)
    }

    /// Returns true if this key made the signature.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let public_key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, self.pair.public_key());
        public_key.verify(message, signature).is_ok()
    }
}

/// Returns the modulus of a public key that was made here.
fn modulus(public_key: &[u8]) -> Option<&[u8]> {
    let modulus = public_key.strip_prefix(&BEFORE_MODULUS)?.strip_suffix(&AFTER_MODULUS)?;
    (modulus.len() == MODULUS_LENGTH).then_some(modulus)
}

/// Computes the JWK thumbprint of an RSA key (RFC 7638 §3).
fn thumbprint(n: &str, e: &str) -> String {
    let jwk = format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, jwk.as_bytes()))
}

/// Writes under another name first, so that an interrupted start leaves no half-written key.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(Uuid::new_v4().simple().to_string());
    let fill = |mut file: File| {
        file.write_all(bytes)?;
        file.sync_all()
    };
    let written = create(&temporary).and_then(fill).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates a file that only its owner may read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_is_that_of_the_standards_example() {
        // RFC 7638 §3.1
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        assert_eq!(thumbprint(n, "AQAB"), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }
}
