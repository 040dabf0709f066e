//! The encryption of codes and tokens.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use crate::keys::seal::SealedBy;
use crate::keys::seal::{Seal, Unopened};
use crate::secret::SecretKeys;

/// Purpose under which codes and tokens are sealed.
const PURPOSE: &str = "provider tokens";

/// The contents of a row.
#[derive(Serialize, Deserialize)]
pub enum Contents {
    /// An authorization code.
    Code {
        code: String,
        /// The redirect URI of the request that it was issued for.
        redirect_uri: Option<String>,
    },
    Token {
        token: String,
    },
}

/// Seals the contents of rows.
#[derive(Debug)]
pub struct Safe(Seal);

impl Safe {
    /// Derives the seal.
    pub fn new(secret_key: &SecretKeys) -> Result<Self, Unopened> {
        Seal::new(secret_key, PURPOSE).map(Self)
    }

    /// Seals the contents of the row with that id.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn seal(&self, id: Uuid, contents: &Contents) -> Result<Vec<u8>, Unopened> {
        self.0.seal(&id.to_string(), serde_json::to_vec(contents).map_err(|_| Unopened)?)
    }

    /// Opens the contents of the row with that id.
    pub fn open(&self, id: Uuid, sealed: &[u8]) -> Result<Contents, Unopened> {
        serde_json::from_slice(&self.0.open(&id.to_string(), sealed)?).map_err(|_| Unopened)
    }

    /// Returns true if a previous secret key is in the settings.
    pub const fn is_changing(&self) -> bool {
        self.0.is_changing()
    }

    /// Returns the seal that a value has.
    pub fn sealed_by(&self, id: Uuid, sealed: &[u8]) -> SealedBy {
        self.0.sealed_by(&id.to_string(), sealed)
    }

    /// Seals a value again that has the previous seal. Returns `None` for any other.
    pub fn seal_again(&self, id: Uuid, sealed: &[u8]) -> Option<Vec<u8>> {
        self.0.seal_again(&id.to_string(), sealed)
    }
}
