//! `secret_key`: one key, or a list of the new one and the one before it.

use std::collections::BTreeSet;
use std::fmt;

use figment::Figment;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

use super::Error;
use crate::secret::{Secret, SecretKeys};

/// The shortest accepted key, in characters.
const MIN: usize = 32;

/// The keys as they are written.
#[derive(Debug, Clone)]
pub(super) struct Raw(Vec<Secret<String>>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a list of the new key and the previous one")
            }

            fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Raw, E> {
                Ok(Raw(vec![Secret::new(key.to_owned())]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) =
                    seq.next_element().map_err(|_| A::Error::custom("must be a list of strings"))?
                {
                    keys.push(key);
                }
                Ok(Raw(keys))
            }
        }
        deserializer.deserialize_any(Keys)
    }
}

/// Checks the keys.
pub(super) fn read(figment: &Figment, keys: Option<Raw>) -> Result<SecretKeys, Error> {
    const REMEDY: &str = "generate one with `openssl rand -base64 32`";
    let fail = |problem: &str, remedy: &str| Err(Error::at(figment, "secret_key", problem, remedy));
    let keys = keys.map_or_else(Vec::new, |Raw(keys)| keys);
    if keys.iter().any(|key| key.expose().chars().count() < MIN) {
        return fail("is too short: it must have at least 32 characters", REMEDY);
    }
    if keys.iter().any(|key| key.expose().chars().collect::<BTreeSet<_>>().len() < 8) {
        return fail("is too predictable: it must have at least 8 different characters", REMEDY);
    }
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next(), keys.next()) {
        (None, ..) => fail("is missing", REMEDY),
        (Some(current), previous, None) => Ok(SecretKeys { current, previous }),
        _ => fail("has more than two keys", "set it to the new key and the one before it"),
    }
}
