//! Refresh tokens: `base64url(session id ‖ family secret ‖ token secret)`. Only hashes of the
//! secrets are stored.
//!
//! All tokens of a session share the family secret, so an old token is recognised without being
//! stored. A successor's token secret is derived from the exchanged token (HMAC-SHA-256, RFC 2104),
//! so two concurrent refreshes get the same successor, and it need not be stored. If the response
//! was lost, a later successor is derived from the time as well.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::accounts::sessions::Hash;
use crate::secret::{Secret, SecretKeys, random};

const FAMILY: usize = 16;
const SECRET: usize = 32;
const LENGTH: usize = 16 + FAMILY + SECRET;

/// Period in which a repeated exchange returns the same successor, in seconds. A phone sends two
/// refreshes at once when it resumes, and another when the response got lost.
pub(in crate::accounts) const REPEAT: u32 = 30;

#[derive(Debug)]
pub struct Successors {
    key: hmac::Key,
    previous: Option<Box<Self>>,
}

impl Successors {
    /// Derives the keys from `secret_key`, which all instances share.
    pub fn new(secret_keys: &SecretKeys) -> Self {
        let previous = secret_keys
            .previous
            .clone()
            .map(|key| Box::new(Self::new(&key.into())));
        let key = hmac::Key::new(
            hmac::HMAC_SHA256,
            &secret_keys.current.derive("refresh tokens"),
        );
        Self { key, previous }
    }

    /// Returns the derivation by the previous `secret_key`, by which a session's live token may
    /// still be derived.
    pub fn previous(&self) -> Option<&Self> {
        self.previous.as_deref()
    }

    pub fn of(&self, token: &RefreshToken) -> RefreshToken {
        self.derived(token, &[])
    }

    /// Returns the successor that a token gets in `period` if the response with the first one was
    /// lost.
    pub fn reissue(&self, token: &RefreshToken, period: i64) -> RefreshToken {
        self.derived(token, &period.to_be_bytes())
    }

    fn derived(&self, token: &RefreshToken, period: &[u8]) -> RefreshToken {
        let mut context = hmac::Context::with_key(&self.key);
        let mut bytes = *token.0.expose();
        context.update(&bytes);
        context.update(period);
        bytes[16 + FAMILY..].copy_from_slice(context.sign().as_ref());
        RefreshToken(Secret::new(bytes))
    }
}

#[derive(Debug)]
pub struct RefreshToken(Secret<[u8; LENGTH]>);

impl RefreshToken {
    /// Generates the first token of a session.
    pub fn first(session: Uuid) -> Self {
        let mut bytes = random();
        bytes[..16].copy_from_slice(session.as_bytes());
        Self(Secret::new(bytes))
    }

    /// Parses a token that a client sent. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD
            .decode(text)
            .ok()?
            .try_into()
            .ok()
            .map(Secret::new)
            .map(Self)
    }

    pub fn text(&self) -> Secret<String> {
        Secret::new(URL_SAFE_NO_PAD.encode(self.0.expose()))
    }

    /// Returns the session that the token names. Only the hashes prove that the token belongs to
    /// it.
    pub fn session(&self) -> Uuid {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0.expose()[..16]);
        Uuid::from_bytes(id)
    }

    pub fn family_hash(&self) -> Hash {
        hash(&self.0.expose()[16..16 + FAMILY])
    }

    pub fn token_hash(&self) -> Hash {
        hash(&self.0.expose()[16 + FAMILY..])
    }
}

fn hash(secret: &[u8]) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(&digest(&SHA256, secret).as_ref()[..size_of::<Hash>()]);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altered(token: &RefreshToken, byte: usize) -> RefreshToken {
        let mut bytes = *token.0.expose();
        bytes[byte] ^= 1;
        RefreshToken(Secret::new(bytes))
    }

    #[test]
    fn a_successor_depends_on_key_session_family_and_token() {
        let successors = |key: &str| Successors::new(&Secret::new(key.into()).into());
        let token = RefreshToken::first(Uuid::now_v7());
        let successor = successors("a").of(&token);
        assert_eq!(successor.0, successors("a").of(&token).0);
        assert_eq!(
            (successor.session(), successor.family_hash()),
            (token.session(), token.family_hash()),
            "session and family stay"
        );
        for changed in [0, 16, 16 + FAMILY] {
            let other = altered(&token, changed);
            assert_ne!(
                successors("a").of(&other).token_hash(),
                successor.token_hash(),
                "byte {changed}"
            );
        }
        assert_ne!(
            successors("b").of(&token).token_hash(),
            successor.token_hash()
        );
        let successors = successors("a");
        for other in [successors.reissue(&token, 0), successors.reissue(&token, 1)] {
            assert_eq!(other.family_hash(), successor.family_hash());
            assert_ne!(other.token_hash(), successor.token_hash());
        }
        assert_ne!(
            successors.reissue(&token, 0).0,
            successors.reissue(&token, 1).0,
            "each period has its own"
        );
    }

    #[test]
    fn family_hash_and_token_hash_each_cover_one_secret_only() {
        let token = RefreshToken::first(Uuid::now_v7());
        for (byte, of_family, of_token) in [
            (0, false, false),
            (16, true, false),
            (16 + FAMILY - 1, true, false),
            (16 + FAMILY, false, true),
            (LENGTH - 1, false, true),
        ] {
            let other = altered(&token, byte);
            assert_eq!(
                other.family_hash() != token.family_hash(),
                of_family,
                "byte {byte}"
            );
            assert_eq!(
                other.token_hash() != token.token_hash(),
                of_token,
                "byte {byte}"
            );
        }
    }
}
