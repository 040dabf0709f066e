//! Authorization codes (RFC 6749 §4.1.2): 256 random bits each, valid once and for a minute. They are kept in
//! memory.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::account::Person;
use crate::secret::Secret;

/// Lifetime of a code, in seconds.
const TTL: i64 = 60;

/// The most codes kept; one more replaces the oldest.
const MAX_CODES: usize = 1000;

/// The user and the request that a code was issued for.
#[derive(Debug)]
pub(super) struct Grant {
    pub client_id: String,
    pub redirect_uri: String,
    pub code_challenge: Option<String>,
    pub nonce: Option<String>,
    pub person: Person,
}

#[derive(Debug)]
struct Code {
    text: Secret<String>,
    expires: i64,
    grant: Grant,
}

/// The unused codes, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Codes(Mutex<VecDeque<Code>>);

impl Codes {
    /// Issues a code.
    pub fn issue(&self, grant: Grant, now: i64) -> Result<String, Unspecified> {
        let text = random()?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|code| now < code.expires);
        if codes.len() == MAX_CODES {
            codes.pop_front();
        }
        codes.push_back(Code { text: Secret::new(text.clone()), expires: now + TTL, grant });
        Ok(text)
    }

    /// Returns the grant behind a code. The code is used up in any case.
    pub fn redeem(&self, text: &str, now: i64) -> Option<Grant> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = codes.iter().position(|code| code.text.expose() == text)?;
        codes.remove(place).filter(|code| now < code.expires).map(|code| code.grant)
    }
}

/// Returns 256 random bits as text.
pub(super) fn random() -> Result<String, Unspecified> {
    let mut bits = [0; 32];
    rand::fill(&mut bits)?;
    Ok(URL_SAFE_NO_PAD.encode(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Grant {
        Grant {
            client_id: "client".into(),
            redirect_uri: "http://127.0.0.1/".into(),
            code_challenge: None,
            nonce: None,
            person: Person::new(Some("ada@example.com"), None, None, true).unwrap(),
        }
    }

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let codes = Codes::default();
        let [early, late] = [codes.issue(grant(), 1000), codes.issue(grant(), 1000)].map(Result::unwrap);
        assert!(codes.redeem(&early, 1000 + TTL - 1).is_some());
        assert!(codes.redeem(&early, 1000 + TTL - 1).is_none());
        assert!(codes.redeem(&late, 1000 + TTL).is_none());
    }

    #[test]
    fn the_oldest_code_makes_way_when_there_are_too_many() {
        let codes = Codes::default();
        let all: Vec<_> = (0..=MAX_CODES).map(|_| codes.issue(grant(), 1000).unwrap()).collect();
        assert!(codes.redeem(&all[0], 1000).is_none());
        assert!(codes.redeem(&all[1], 1000).is_some() && codes.redeem(&all[MAX_CODES], 1000).is_some());
    }
}
