//! What is stored of a code or a token, encrypted.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::keys::seal::{Seal, Unopened};

#[derive(Serialize, Deserialize)]
pub enum Contents {
    Code { code: String, redirect_uri: Option<String> },
    Token { token: String },
}

impl Contents {
    /// Seals the contents of the row with that id.
    pub fn seal(&self, seal: &Seal, id: Uuid) -> Result<Vec<u8>, Unopened> {
        seal.seal(&id.to_string(), serde_json::to_vec(self).map_err(|_| Unopened)?)
    }

    pub fn open(seal: &Seal, id: Uuid, sealed: &[u8]) -> Result<Self, Unopened> {
        serde_json::from_slice(&seal.open(&id.to_string(), sealed)?).map_err(|_| Unopened)
    }
}
