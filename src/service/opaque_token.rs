//! Opaque tokens, such as the cookies of staff: 256 random bits, of which only the SHA-256 is stored.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::secret::Secret;

#[derive(Debug)]
pub struct OpaqueToken {
    /// Text for the client.
    pub text: Secret<String>,
    /// Hash to store.
    pub hash: [u8; 32],
}

impl OpaqueToken {
    /// Generates a token.
    ///
    /// # Panics
    /// The system's random number generator failed, so nothing that follows could be trusted.
    pub fn generate() -> Self {
        let mut bits = [0; 32];
        rand::fill(&mut bits).expect("the system gives random bits");
        let text = URL_SAFE_NO_PAD.encode(bits);
        let hash = Self::hash_of(&text);
        Self { text: Secret::new(text), hash }
    }

    pub fn parse(text: &str) -> Option<[u8; 32]> {
        let sound =
            text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        sound.then(|| Self::hash_of(text))
    }

    fn hash_of(text: &str) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        hash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ten_thousand_tokens_have_nothing_in_common() {
        let tokens: BTreeSet<String> =
            (0..10_000).map(|_| OpaqueToken::generate().text.expose().clone()).collect();
        assert_eq!(tokens.len(), 10_000);
        // Each of the 256 bits is set about half of the time: five standard deviations are 250.
        let mut set = [0_i32; 256];
        for token in &tokens {
            assert_eq!(OpaqueToken::parse(token), Some(OpaqueToken::hash_of(token)));
            let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
            assert_eq!(bytes.len(), 32);
            for (bit, count) in set.iter_mut().enumerate() {
                *count += i32::from(bytes[bit / 8] >> (bit % 8) & 1);
            }
        }
        assert!(set.iter().all(|count| (count - 5_000).abs() < 300), "{set:?}");
    }
}
