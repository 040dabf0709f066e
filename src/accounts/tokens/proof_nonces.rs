//! Nonces for `DPoP` proofs (RFC 9449 §8): `base64url(window ‖ HMAC-SHA-256 of it, 12 bytes)`.
//! Every instance recognises them by `secret_key`, without storing them.

use aws_lc_rs::{constant_time, hmac};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::secret::{Secret, SecretKeys};

/// The length of a window, in seconds. A nonce is good in its window, in the next, and in the one
/// before, for an instance whose clock is behind.
const WINDOW: i64 = 120;
const LENGTH: usize = 16;

/// Makes nonces, and recognises them.
#[derive(Debug)]
pub struct ProofNonces {
    /// The keys of the current `secret_key` and of the previous one.
    keys: Vec<hmac::Key>,
}

impl ProofNonces {
    /// Derives the keys from `secret_key`, which all instances share.
    pub fn new(secret_keys: &SecretKeys) -> Self {
        let keys = [Some(&secret_keys.current), secret_keys.previous.as_ref()]
            .into_iter()
            .flatten();
        let key =
            |key: &Secret<String>| hmac::Key::new(hmac::HMAC_SHA256, &key.derive("proof nonces"));
        Self {
            keys: keys.map(key).collect(),
        }
    }

    /// Returns the nonce at `now` (seconds since the epoch).
    pub fn current(&self, now: i64) -> String {
        let window = now.div_euclid(WINDOW);
        self.keys
            .first()
            .map(|key| URL_SAFE_NO_PAD.encode(nonce(key, window)))
            .unwrap_or_default()
    }

    /// Returns true if an instance of this service made the nonce in this window or one beside it.
    pub fn accepts(&self, text: &str, now: i64) -> bool {
        let Ok(Ok(presented)) = URL_SAFE_NO_PAD.decode(text).map(<[u8; LENGTH]>::try_from) else {
            return false;
        };
        let now = now.div_euclid(WINDOW);
        (now - 1..=now + 1)
            .filter(|window| presented[..4] == window.to_be_bytes()[4..])
            .any(|window| {
                let is_of = |key| {
                    constant_time::verify_slices_are_equal(&presented, &nonce(key, window)).is_ok()
                };
                self.keys.iter().any(is_of)
            })
    }
}

fn nonce(key: &hmac::Key, window: i64) -> [u8; LENGTH] {
    let mut nonce = [0; LENGTH];
    nonce[..4].copy_from_slice(&window.to_be_bytes()[4..]);
    nonce[4..].copy_from_slice(&hmac::sign(key, &window.to_be_bytes()).as_ref()[..LENGTH - 4]);
    nonce
}
