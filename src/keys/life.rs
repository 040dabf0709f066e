//! The states of a signing key, derived from its timestamps. The key itself is not handled here.
//!
//! Verifiers of tokens cache our public keys. So a key is published before it signs, and for as
//! long as a token that it signed is valid.

use time::{Duration, OffsetDateTime};

use crate::config::{Keys, Session};

/// Seconds that a key stays published after its last signature. They are the longest lifetime that
/// a token may have, since the settings at the time of the signature are unknown, and a minute,
/// because an instance learns late of a successor if a reload fails, and clocks differ.
pub const KEEP: u32 = Session::LONGEST_ACCESS_TOKEN_TTL + 2 * Keys::RELOAD_EVERY;

/// A key's timestamps, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLife {
    /// The time at which it was made and published.
    pub created_at: OffsetDateTime,
    pub signs_from: OffsetDateTime,
    /// The time from which its successor signs; `None` without a successor.
    pub succeeded_at: Option<OffsetDateTime>,
    /// The time at which it was retired in an emergency.
    pub retired_at: Option<OffsetDateTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum KeyState {
    /// Published, but not yet signing, so that verifiers have it when it begins to sign.
    Next,
    Signing,
    /// No longer signing; published until the last token that it signed has expired.
    Verifying,
    /// Retired: its tokens are refused.
    Retired,
    /// All its tokens have expired, and its row may be deleted.
    Expired,
}

impl KeyState {
    /// Returns true if the key is published and its tokens are accepted.
    pub const fn is_published(self) -> bool {
        matches!(self, Self::Next | Self::Signing | Self::Verifying)
    }
}

impl KeyLife {
    pub fn state(&self, now: OffsetDateTime) -> KeyState {
        let past = |at: Option<OffsetDateTime>| at.is_some_and(|at| at <= now);
        if past(self.published_until()) {
            if past(self.retired_at) {
                KeyState::Retired
            } else {
                KeyState::Expired
            }
        } else if past(self.succeeded_at) {
            KeyState::Verifying
        } else if self.signs_from <= now {
            KeyState::Signing
        } else {
            KeyState::Next
        }
    }

    /// Returns the end of its publication; `None` while it is not known.
    pub fn published_until(&self) -> Option<OffsetDateTime> {
        self.retired_at.or_else(|| {
            self.succeeded_at
                .map(|at| at.saturating_add(Duration::seconds(KEEP.into())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(seconds).unwrap()
    }

    #[test]
    fn a_key_is_next_then_signs_then_verifies_then_expires() {
        let life = KeyLife {
            created_at: at(0),
            signs_from: at(600),
            succeeded_at: Some(at(5000)),
            retired_at: None,
        };
        let rows = [
            (0, KeyState::Next),
            (599, KeyState::Next),
            (600, KeyState::Signing),
            (4999, KeyState::Signing),
            (5000, KeyState::Verifying),
            (4999 + i64::from(KEEP), KeyState::Verifying),
            (5000 + i64::from(KEEP), KeyState::Expired),
        ];
        for (now, state) in rows {
            assert_eq!(life.state(at(now)), state, "at {now}");
            assert_eq!(state.is_published(), state != KeyState::Expired, "at {now}");
        }
    }
}
