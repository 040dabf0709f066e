//! Encryption of stored secrets: AES-256-GCM with a key derived from `secret_key` (HKDF, RFC 5869),
//! bound to the secret's name. Layout: nonce, ciphertext, tag.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};

use crate::secret::{Secret, SecretKeys};

/// The keys for one purpose. The current one seals (encrypts), and both open (decrypt).
#[derive(Debug)]
pub struct Seal {
    current: RandomizedNonceKey,
    previous: Option<RandomizedNonceKey>,
}

/// The `secret_key` that opens a value, by its name in `vestibule keys list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum SealedBy {
    /// The first one in the settings.
    Current,
    Previous,
    /// A `secret_key` that is not in the settings.
    Another,
}

/// A sealed value cannot be opened: it was sealed with another `secret_key` or name, or altered.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("cannot be decrypted: it was encrypted with another `secret_key` or altered")]
pub struct Unopened;

impl Seal {
    /// Derives the keys for one purpose; keys for different purposes are independent.
    /// In practice it never fails; only the backend's type allows for it.
    pub fn new(secret_key: &SecretKeys, purpose: &str) -> Result<Self, Unopened> {
        let previous = secret_key
            .previous
            .as_ref()
            .map(|key| derive(key, purpose))
            .transpose()?;
        Ok(Self {
            current: derive(&secret_key.current, purpose)?,
            previous,
        })
    }

    /// Returns true if a previous `secret_key` is in the settings.
    pub const fn is_changing(&self) -> bool {
        self.previous.is_some()
    }

    pub fn seal(&self, name: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, Unopened> {
        let nonce = self
            .current
            .seal_in_place_append_tag(Aad::from(name.as_bytes()), &mut bytes);
        let mut sealed = nonce.map_err(|_| Unopened)?.as_ref().to_vec();
        sealed.append(&mut bytes);
        Ok(sealed)
    }

    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        self.unseal(name, sealed).map(|(bytes, _)| bytes)
    }

    pub fn sealed_by(&self, name: &str, sealed: &[u8]) -> SealedBy {
        self.unseal(name, sealed)
            .map_or(SealedBy::Another, |(_, by)| by)
    }

    /// Seals a value of the previous `secret_key` with the current one. Returns `None` for any
    /// other value.
    pub fn seal_again(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        match self.unseal(name, sealed) {
            Ok((bytes, SealedBy::Previous)) => self.seal(name, bytes).ok(),
            _ => None,
        }
    }

    fn unseal(&self, name: &str, sealed: &[u8]) -> Result<(Vec<u8>, SealedBy), Unopened> {
        match (open(&self.current, name, sealed), &self.previous) {
            (Err(Unopened), Some(previous)) => {
                Ok((open(previous, name, sealed)?, SealedBy::Previous))
            }
            (opened, _) => Ok((opened?, SealedBy::Current)),
        }
    }
}

fn derive(secret_key: &Secret<String>, purpose: &str) -> Result<RandomizedNonceKey, Unopened> {
    RandomizedNonceKey::new(&AES_256_GCM, &secret_key.derive(purpose)).map_err(|_| Unopened)
}

fn open(key: &RandomizedNonceKey, name: &str, sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
    let (nonce, rest) = sealed.split_at_checked(NONCE_LEN).ok_or(Unopened)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened)?;
    let mut bytes = rest.to_vec();
    let opened = key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut bytes);
    let length = opened.map_err(|_| Unopened)?.len();
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(keys: [&str; 2], purpose: &str) -> Seal {
        let [current, previous] = keys.map(|key| Secret::new(key.to_owned()));
        Seal::new(
            &SecretKeys {
                current,
                previous: Some(previous),
            },
            purpose,
        )
        .unwrap()
    }

    #[test]
    fn sealed_data_opens_only_with_its_own_secret_purpose_and_name() {
        let sealed = seal(["one", ""], "keys")
            .seal("a", b"private".to_vec())
            .unwrap();
        assert_eq!(
            seal(["one", ""], "keys").open("a", &sealed).unwrap(),
            b"private"
        );
        assert!(seal(["two", ""], "keys").open("a", &sealed).is_err());
        assert!(seal(["one", ""], "cookies").open("a", &sealed).is_err());
        assert!(seal(["one", ""], "keys").open("b", &sealed).is_err());
        assert!(seal(["one", ""], "keys").open("a", &sealed[..20]).is_err());
        assert!(seal(["one", ""], "keys").open("a", b"").is_err());
    }

    #[test]
    fn the_previous_secret_opens_and_the_current_one_seals() {
        let sealed = seal(["one", ""], "keys")
            .seal("a", b"private".to_vec())
            .unwrap();
        let both = seal(["two", "one"], "keys");
        assert_eq!(both.open("a", &sealed).unwrap(), b"private");
        assert_eq!(both.sealed_by("a", &sealed), SealedBy::Previous);
        let again = both.seal_again("a", &sealed).unwrap();
        assert_eq!(
            (both.sealed_by("a", &again), both.seal_again("a", &again)),
            (SealedBy::Current, None)
        );
        assert_eq!(
            seal(["three", ""], "keys").sealed_by("a", &again),
            SealedBy::Another
        );
    }
}
