//! What is stored of a code or a token, encrypted.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::keys::seal::{Seal, Unopened};

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

impl Contents {
    /// Seals the contents of the row with that id.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub fn seal(&self, seal: &Seal, id: Uuid) -> Result<Vec<u8>, Unopened> {
        seal.seal(&id.to_string(), serde_json::to_vec(self).map_err(|_| Unopened)?)
    }

    /// Opens the contents of the row with that id.
    pub fn open(seal: &Seal, id: Uuid, sealed: &[u8]) -> Result<Self, Unopened> {
        serde_json::from_slice(&seal.open(&id.to_string(), sealed)?).map_err(|_| Unopened)
    }
}
