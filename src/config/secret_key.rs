//! `secret_key`: one key, or a list of the new one and the one before it.

use std::collections::BTreeSet;

use serde::de::{Deserializer, Error};

use super::text::Texts;
use crate::secret::{Secret, SecretKeys};

/// The shortest accepted key, in characters.
const MIN: usize = 32;
/// A key of Rocket's examples, which many have copied.
const PUBLISHED: &str = "itlYmFR2vYKrOmFhupMIn/hyB6lYCCTXz4yaQX89XVg=";
const EXPECTED: &str = "a string, or a list of the new key and the previous one";
pub(super) const REMEDY: &str = "generate one with `openssl rand -base64 32`";

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretKeys>, D::Error> {
    let fail =
        |problem: &str, remedy: &str| Err(D::Error::custom(format_args!("{problem}; {remedy}")));
    let keys = deserializer.deserialize_any(Texts(EXPECTED, |key| vec![key]))?;
    if keys.iter().any(|key| key.chars().count() < MIN) {
        return fail("is too short: it must have at least 32 characters", REMEDY);
    }
    if keys
        .iter()
        .any(|key| key.chars().collect::<BTreeSet<_>>().len() < 8)
    {
        return fail(
            "is too predictable: it must have at least 8 different characters",
            REMEDY,
        );
    }
    if keys.iter().any(|key| key == PUBLISHED) {
        return fail("is a published example", REMEDY);
    }
    let mut keys = keys.into_iter().map(Secret::new);
    match (keys.next(), keys.next(), keys.next()) {
        (None, ..) => fail("is missing", REMEDY),
        (Some(current), previous, None) => Ok(Some(SecretKeys { current, previous })),
        _ => fail(
            "has more than two keys",
            "set it to the new key and the one before it",
        ),
    }
}
