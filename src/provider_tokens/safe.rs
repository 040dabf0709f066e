//! The encryption of codes and tokens.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

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

/// The seals of both secret keys.
#[derive(Debug)]
pub struct Safe {
    seal: Seal,
    /// It only opens.
    previous: Option<Seal>,
}

/// The seal that a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedBy {
    /// The current secret key.
    Current,
    /// The one before it.
    Previous,
    /// One that is not in the settings.
    Another,
}

impl Safe {
    /// Derives the seals.
    pub fn new(secret_key: &SecretKeys) -> Result<Self, Unopened> {
        let previous = secret_key.previous.as_ref().map(|key| Seal::new(key, PURPOSE)).transpose()?;
        Ok(Self { seal: Seal::new(&secret_key.current, PURPOSE)?, previous })
    }

    /// Seals the contents of the row with that id.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn seal(&self, id: Uuid, contents: &Contents) -> Result<Vec<u8>, Unopened> {
        self.seal.seal(&id.to_string(), serde_json::to_vec(contents).map_err(|_| Unopened)?)
    }

    /// Opens the contents of the row with that id.
    pub fn open(&self, id: Uuid, sealed: &[u8]) -> Result<Contents, Unopened> {
        serde_json::from_slice(&self.unseal(id, sealed)?.0).map_err(|_| Unopened)
    }

    /// Returns true if a previous secret key is in the settings.
    pub const fn is_changing(&self) -> bool {
        self.previous.is_some()
    }

    /// Returns the seal that a value has.
    pub fn sealed_by(&self, id: Uuid, sealed: &[u8]) -> SealedBy {
        self.unseal(id, sealed).map_or(SealedBy::Another, |(_, by)| by)
    }

    /// Seals a value again that has the previous seal. Returns `None` for any other.
    pub fn seal_again(&self, id: Uuid, sealed: &[u8]) -> Option<Vec<u8>> {
        match self.unseal(id, sealed) {
            Ok((bytes, SealedBy::Previous)) => self.seal.seal(&id.to_string(), bytes).ok(),
            _ => None,
        }
    }

    fn unseal(&self, id: Uuid, sealed: &[u8]) -> Result<(Vec<u8>, SealedBy), Unopened> {
        let name = id.to_string();
        match (self.seal.open(&name, sealed), &self.previous) {
            (Err(Unopened), Some(previous)) => Ok((previous.open(&name, sealed)?, SealedBy::Previous)),
            (opened, _) => Ok((opened?, SealedBy::Current)),
        }
    }
}
