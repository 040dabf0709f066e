//! Authorization codes (RFC 6749 §4.1.2), valid once and for a minute. They are kept in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::account::DevAccount;
use crate::service::OpaqueToken;

/// In seconds.
const TTL: i64 = 60;

/// The account and the request that a code was issued for.
#[derive(Debug)]
pub(super) struct Grant {
    pub redirect_uri: String,
    pub code_challenge: String,
    pub nonce: String,
    pub account: DevAccount,
}

/// The unused codes by their hashes, each with the time when it expires.
#[derive(Debug, Default)]
pub(super) struct Codes(Mutex<HashMap<[u8; 32], (i64, Grant)>>);

impl Codes {
    pub fn issue(&self, grant: Grant, now: i64) -> String {
        let OpaqueToken { text, hash } = OpaqueToken::generate();
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, (expires, _)| now < *expires);
        codes.insert(hash, (now + TTL, grant));
        text.expose().clone()
    }

    /// Returns the grant behind a code. The code is used up in any case.
    pub fn redeem(&self, code: &str, now: i64) -> Option<Grant> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (expires, grant) = codes.remove(&OpaqueToken::parse(code)?)?;
        (now < expires).then_some(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let grant = || Grant {
            redirect_uri: "http://127.0.0.1/".into(),
            code_challenge: String::new(),
            nonce: String::new(),
            account: DevAccount::new("ada@example.com", "", "", true).unwrap(),
        };
        let codes = Codes::default();
        let [early, late] = [codes.issue(grant(), 1000), codes.issue(grant(), 1000)];
        assert!(codes.redeem(&early, 1000 + TTL - 1).is_some());
        assert!(codes.redeem(&early, 1000 + TTL - 1).is_none());
        assert!(codes.redeem(&late, 1000 + TTL).is_none());
    }
}
