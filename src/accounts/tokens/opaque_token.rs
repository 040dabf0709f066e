//! Opaque tokens, such as the cookies of staff: 256 random bits, of which only the SHA-256 is
//! stored.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::secret::{Secret, random};

#[derive(Debug)]
pub struct OpaqueToken {
    /// Text for the client.
    pub text: Secret<String>,
    /// Hash to store.
    pub hash: [u8; 32],
}

impl OpaqueToken {
    pub fn generate() -> Self {
        let text = URL_SAFE_NO_PAD.encode(random::<32>());
        let hash = Self::hash_of(&text);
        Self {
            text: Secret::new(text),
            hash,
        }
    }

    pub fn parse(text: &str) -> Option<[u8; 32]> {
        let sound = text.len() == 43
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        sound.then(|| Self::hash_of(text))
    }

    fn hash_of(text: &str) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        hash
    }
}
