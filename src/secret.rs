//! A wrapper for secrets: no `Serialize`, no `Display`, a redacted `Debug`.

use std::fmt;

use serde::Deserialize;

/// A secret. Its only accessor is [`Secret::expose`], which is easy to search for.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the secret, for the one place that has to use it.
    pub const fn expose(&self) -> &T {
        &self.0
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
        Self { current, previous: None }
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
