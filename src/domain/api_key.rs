//! API keys: the credentials with which the product's backend administers users.

use std::fmt;
use std::str::FromStr;

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// The permissions of an API key. Each role may do everything that the roles before it may.
/// Commands, the database and pages use the same names.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum KeyRole {
    /// May read.
    Reader,
    /// May read, and end sessions.
    Support,
    /// May do everything.
    Admin,
}

/// The name of an API key: up to 40 lower-case letters, digits and hyphens, with no hyphen at
/// either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName(String);

impl KeyName {
    /// The length of the longest name.
    pub const MAX_LENGTH: usize = 40;
    /// The prefix of the names of keys among the actors of events.
    pub const ACTOR_PREFIX: &'static str = "key:";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if an event's actor is an API key. No e-mail address of staff is taken for one:
    /// it contains an `@`.
    pub fn is_actor(actor: &str) -> bool {
        actor
            .strip_prefix(Self::ACTOR_PREFIX)
            .is_some_and(|name| Self::from_str(name).is_ok())
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the name of an API key has up to 40 lower-case letters, digits and hyphens, and begins and ends with none"
)]
pub struct NotAName;

impl FromStr for KeyName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let sound = (1..=Self::MAX_LENGTH).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if sound {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAName)
        }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_in_a_way_that_no_address_is() {
        for name in ["b", "billing", "shop-2", "0", &"a".repeat(40)] {
            assert_eq!(name.parse::<KeyName>().unwrap().as_str(), name);
            assert!(KeyName::is_actor(&format!("key:{name}")), "{name}");
        }
        let long = "a".repeat(41);
        for name in [
            "", "-", "-a", "a-", "Billing", "a b", "a.b", "a@b", "a:b", "é", "a\n", &long,
        ] {
            assert!(name.parse::<KeyName>().is_err(), "{name:?}");
            assert!(!KeyName::is_actor(&format!("key:{name}")), "{name:?}");
        }
        assert!(!KeyName::is_actor("key:grace@example.com"));
        assert!(!KeyName::is_actor("billing"));
    }
}
