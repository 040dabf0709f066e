//! A wrapper for secrets: no `Serialize`, no `Display`, a redacted `Debug`.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::rand;
use serde::Deserialize;

/// A secret. Its only accessor is [`Secret::expose`], which is easy to search for.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the secret, for the one place that has to use it.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl Secret<String> {
    /// Derives a key for one purpose (HKDF, RFC 5869); keys for different purposes are independent.
    ///
    /// # Panics
    /// Never: HKDF can give a key of this length.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let extracted = Salt::new(HKDF_SHA256, b"vestibule").extract(self.0.as_bytes());
        let purpose = [purpose.as_bytes()];
        let mut key = [0; 32];
        let expanded = extracted.expand(&purpose, HKDF_SHA256);
        expanded
            .and_then(|expanded| expanded.fill(&mut key))
            .expect("HKDF gives 32 bytes");
        key
    }
}

/// Returns random bytes, for a secret that cannot be guessed.
///
/// # Panics
/// The system's random number generator failed, so nothing that follows could be trusted.
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    rand::fill(&mut bytes).expect("the system gives random bits");
    bytes
}

/// A secret that can be replaced while it is in use. Clones share it.
#[derive(Debug, Clone)]
pub struct Replaceable(Arc<RwLock<Secret<String>>>);

impl From<Secret<String>> for Replaceable {
    fn from(secret: Secret<String>) -> Self {
        Self(Arc::new(RwLock::new(secret)))
    }
}

impl Replaceable {
    pub fn now(&self) -> Secret<String> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn replace(&self, secret: Secret<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = secret;
    }
}

/// The key that encrypts and derives, and the one before it while it is being replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretKeys {
    /// The key for all that is new.
    pub current: Secret<String>,
    /// A key that still decrypts and recognises.
    pub previous: Option<Secret<String>>,
}

impl From<Secret<String>> for SecretKeys {
    fn from(current: Secret<String>) -> Self {
        Self {
            current,
            previous: None,
        }
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_in_debug_output() {
        assert_eq!(
            format!("{:?}", Some(Secret::new("hush"))),
            "Some([redacted])"
        );
    }

    #[test]
    fn each_random_bit_is_set_about_half_of_the_time() {
        let mut set = [0_i32; 8 * 48];
        for _ in 0..10_000 {
            let bytes = random::<48>();
            for (bit, count) in set.iter_mut().enumerate() {
                *count += i32::from(bytes[bit / 8] >> (bit % 8) & 1);
            }
        }
        // Five standard deviations are 250.
        assert!(
            set.iter().all(|count| (count - 5_000).abs() < 300),
            "{set:?}"
        );
    }
}
