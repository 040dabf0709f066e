//! The life of a signing key, told from its timestamps. Not the key: no bytes of one are here.
//!
//! Whoever verifies tokens keeps our public keys for a while, so a key is published before it signs
//! and for as long as a token that it signed is valid.

use time::{Duration, OffsetDateTime};

/// When what happens to a key, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLife {
    /// Made, and published since.
    pub created_at: OffsetDateTime,
    /// Signs from then on.
    pub signs_from: OffsetDateTime,
    /// Its successor signs from then on; unknown until there is one.
    pub succeeded_at: Option<OffsetDateTime>,
    /// Withdrawn in an emergency, before its time.
    pub retired_at: Option<OffsetDateTime>,
}

/// What a key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// Published, so that it is known everywhere when it begins to sign.
    Next,
    /// Signs.
    Signing,
    /// Signs no more; published until the last token that it signed has expired.
    Verifying,
    /// Withdrawn: its tokens are refused.
    Retired,
    /// No valid token of it is left, and its row may go.
    Expired,
}

impl KeyState {
    /// Whether others are told of the key, and its tokens accepted.
    #[must_use]
    pub const fn is_published(self) -> bool {
        matches!(self, Self::Next | Self::Signing | Self::Verifying)
    }

    /// The state in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Signing => "signing",
            Self::Verifying => "verifying",
            Self::Retired => "retired",
            Self::Expired => "expired",
        }
    }
}

impl KeyLife {
    /// The state at a point of time, of a key that stays published for `keep` after its last
    /// signature.
    #[must_use]
    pub fn state(&self, now: OffsetDateTime, keep: Duration) -> KeyState {
        let past = |at: Option<OffsetDateTime>| at.is_some_and(|at| at <= now);
        if past(self.published_until(keep)) {
            if past(self.retired_at) { KeyState::Retired } else { KeyState::Expired }
        } else if past(self.succeeded_at) {
            KeyState::Verifying
        } else if self.signs_from <= now {
            KeyState::Signing
        } else {
            KeyState::Next
        }
    }

    /// When it stops being published, once that is known.
    #[must_use]
    pub fn published_until(&self, keep: Duration) -> Option<OffsetDateTime> {
        self.retired_at.or_else(|| self.succeeded_at.map(|at| at.saturating_add(keep)))
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
            (5899, KeyState::Verifying),
            (5900, KeyState::Expired),
        ];
        for (now, state) in rows {
            assert_eq!(life.state(at(now), Duration::seconds(900)), state, "at {now}");
            assert_eq!(state.is_published(), now < 5900, "at {now}");
        }
    }

    #[test]
    fn a_key_without_a_successor_signs_for_ever_and_a_retired_one_never_again() {
        let life = KeyLife { created_at: at(0), signs_from: at(0), succeeded_at: None, retired_at: None };
        assert_eq!(life.state(at(100_000_000_000), Duration::ZERO), KeyState::Signing);
        let retired = KeyLife { retired_at: Some(at(10)), succeeded_at: Some(at(10)), ..life };
        assert_eq!(retired.state(at(9), Duration::seconds(900)), KeyState::Signing);
        assert_eq!(retired.state(at(10), Duration::seconds(900)), KeyState::Retired);
    }
}
