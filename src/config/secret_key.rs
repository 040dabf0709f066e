//! `secret_key`: one key, or a list of the new one and the one before it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use crate::secret::{Secret, SecretKeys};

/// The shortest accepted key, in characters.
const MIN: usize = 32;
/// A key of Rocket's examples, which many have copied.
const PUBLISHED: &str = "itlYmFR2vYKrOmFhupMIn/hyB6lYCCTXz4yaQX89XVg=";
pub(super) const REMEDY: &str = "generate one with `openssl rand -base64 32`";

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretKeys>, D::Error> {
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string, or a list of the new key and the previous one")
        }

        fn visit_str<E: Error>(self, key: &str) -> Result<Vec<String>, E> {
            Ok(vec![key.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
            std::iter::from_fn(|| seq.next_element().transpose())
                .map(|key| key.map_err(|_| A::Error::custom("must be a list of strings")))
                .collect()
        }
    }
    let fail = |problem: &str, remedy: &str| Err(D::Error::custom(format_args!("{problem}; {remedy}")));
    let keys = deserializer.deserialize_any(Keys)?;
    if keys.iter().any(|key| key.chars().count() < MIN) {
        return fail("is too short: it must have at least 32 characters", REMEDY);
    }
    if keys.iter().any(|key| key.chars().collect::<BTreeSet<_>>().len() < 8) {
        return fail("is too predictable: it must have at least 8 different characters", REMEDY);
    }
    if keys.iter().any(|key| key == PUBLISHED) {
        return fail("is a published example", REMEDY);
    }
    let mut keys = keys.into_iter().map(Secret::new);
    match (keys.next(), keys.next(), keys.next()) {
        (None, ..) => fail("is missing", REMEDY),
        (Some(current), previous, None) => Ok(Some(SecretKeys { current, previous })),
        _ => fail("has more than two keys", "set it to the new key and the one before it"),
    }
}
