//! Encryption of stored secrets: AES-256-GCM with a key derived from `secret_key` (HKDF, RFC 5869), bound to the
//! secret's name. Layout: nonce, ciphertext, tag.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};

use crate::secret::Secret;

/// The key for one purpose, which seals (encrypts) and opens (decrypts).
#[derive(Debug)]
pub struct Seal(RandomizedNonceKey);

/// A sealed value cannot be opened: it was sealed with another `secret_key` or name, or altered.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("cannot be decrypted: it was encrypted with another `secret_key` or altered")]
pub struct Unopened;

impl Seal {
    /// Derives the seal for one purpose; keys of different purposes are independent.
    ///
    /// # Errors
    /// Never in practice; only the backend's type allows for it.
    pub fn new(secret_key: &Secret<String>, purpose: &str) -> Result<Self, Unopened> {
        let extracted = Salt::new(HKDF_SHA256, b"vestibule").extract(secret_key.expose().as_bytes());
        let mut key = [0; 32];
        extracted
            .expand(&[purpose.as_bytes()], HKDF_SHA256)
            .and_then(|expanded| expanded.fill(&mut key))
            .map_err(|_| Unopened)?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).map(Self).map_err(|_| Unopened)
    }

    /// Seals bytes under a name.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn seal(&self, name: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, Unopened> {
        let nonce =
            self.0.seal_in_place_append_tag(Aad::from(name.as_bytes()), &mut bytes).map_err(|_| Unopened)?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut bytes);
        Ok(sealed)
    }

    /// Opens a value that was sealed under that name.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        let (nonce, rest) = sealed.split_at_checked(NONCE_LEN).ok_or(Unopened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened)?;
        let mut bytes = rest.to_vec();
        let length =
            self.0.open_in_place(nonce, Aad::from(name.as_bytes()), &mut bytes).map_err(|_| Unopened)?.len();
        bytes.truncate(length);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_only_with_the_same_secret_purpose_and_name() {
        let seal = |secret: &str, purpose| Seal::new(&Secret::new(secret.into()), purpose).unwrap();
        let sealed = seal("one", "keys").seal("a", b"private".to_vec()).unwrap();
        assert_eq!(seal("one", "keys").open("a", &sealed).unwrap(), b"private");
        assert!(seal("two", "keys").open("a", &sealed).is_err());
        assert!(seal("one", "cookies").open("a", &sealed).is_err());
        assert!(seal("one", "keys").open("b", &sealed).is_err());
        assert!(seal("one", "keys").open("a", &sealed[..20]).is_err());
        assert!(seal("one", "keys").open("a", b"").is_err());
    }
}
