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

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
