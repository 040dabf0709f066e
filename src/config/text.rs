//! Values that deserialize only if they are valid. Environment variables can only give them as
//! text. In the messages, the remedy follows the problem after a semicolon (`Error::from_figment`).

use std::fmt::{self, Display};
use std::ops::RangeInclusive;

use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};
use url::Url;

use crate::domain::secure_url::secure;

pub(super) const DAY: u32 = 24 * 60 * 60;

/// A value that may also be written as text. The fields are the expected value, for messages, and
/// the parser of the text.
struct Scalar<F>(&'static str, F);

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Scalar<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text.trim()).ok_or_else(|| E::invalid_value(Unexpected::Other("text"), &self))
    }
}

pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(Scalar("true or false", |text: &str| text.parse().ok()))
}

pub(super) fn number<'de, D: Deserializer<'de>>(
    deserializer: D,
    range: RangeInclusive<u32>,
    remedy: impl Display,
) -> Result<u32, D::Error> {
    let parse = |text: &str| text.parse().ok();
    within(
        deserializer.deserialize_any(Scalar("a non-negative integer", parse))?,
        range,
        remedy,
    )
}

/// Deserializes seconds, with or without the unit: `60` or `60s`.
pub(super) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
    range: RangeInclusive<u32>,
    remedy: impl Display,
) -> Result<u32, D::Error> {
    let parse = |text: &str| text.trim_end_matches('s').trim_end().parse().ok();
    within(
        deserializer.deserialize_any(Scalar("seconds, such as 60 or \"60s\"", parse))?,
        range,
        remedy,
    )
}

fn within<E: Error>(
    value: u32,
    range: RangeInclusive<u32>,
    remedy: impl Display,
) -> Result<u32, E> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(E::custom(format_args!("is out of range; {remedy}")))
    }
}

/// Deserializes a number of seconds without the unit.
pub(super) fn seconds<'de, const MIN: u32, const MAX: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<u32, D::Error> {
    number(
        deserializer,
        MIN..=MAX,
        format_args!("set it to {MIN} to {MAX} seconds"),
    )
}

/// Deserializes a number that is checked against others later.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    number(deserializer, 0..=u32::MAX, "")
}

/// Deserializes a number up to ten thousand.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    number(deserializer, 1..=10_000, "set it to 1 to 10000")
}

/// Reads a list of texts, or one text that the function splits into items. The first field
/// describes the expected value in messages.
pub(super) struct Texts(pub &'static str, pub fn(&str) -> Vec<&str>);

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((self.1)(text).into_iter().map(str::to_owned).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| seq.next_element().transpose())
            .map(|text| text.map_err(|_| A::Error::custom("must be a list of strings")))
            .collect()
    }
}

/// Deserializes a list, or one text with commas. No item may be blank.
pub(super) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Texts("a list of strings, or one comma-separated string", |text| {
        text.split(',').collect()
    });
    deserializer
        .deserialize_any(texts)?
        .iter()
        .map(|text| item(text))
        .collect()
}

fn item<E: Error>(text: &str) -> Result<String, E> {
    let text = text.trim();
    // A list in the syntax of another file would be one item.
    if text.starts_with(['[', '"']) {
        return Err(E::custom(
            "contains an item that begins with a bracket or a quotation mark",
        ));
    }
    if text.is_empty() || text.contains(|c: char| c == ',' || c.is_whitespace() || c.is_control()) {
        return Err(E::custom(
            "contains an item that is empty or contains whitespace",
        ));
    }
    Ok(text.to_owned())
}

/// Deserializes a list whose items have a type of their own.
pub(super) fn list_of<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, &'static str>,
    remedy: impl Display,
) -> Result<Vec<T>, D::Error> {
    let mistake = |problem| D::Error::custom(format_args!("{problem}; {remedy}"));
    list(deserializer)?
        .iter()
        .map(|item| parse(item).map_err(mistake))
        .collect()
}

/// Reads a URL to which a secret may be sent.
pub(super) fn secure_url<E: Error>(text: &str, remedy: &str) -> Result<Url, E> {
    let url =
        Url::parse(text).map_err(|e| E::custom(format_args!("is not a URL ({e}); {remedy}")))?;
    let insecure = "must be https (http only on this machine), without a password or a fragment";
    if secure(&url) {
        Ok(url)
    } else {
        Err(E::custom(format_args!("{insecure}; {remedy}")))
    }
}

/// Reads an origin: `https`, or `http` on this machine, with nothing after the host and port.
pub(super) fn origin<E: Error>(text: &str, remedy: &str) -> Result<String, E> {
    let origin = secure_url::<E>(text, remedy)?
        .origin()
        .ascii_serialization();
    if text.trim_end_matches('/') != origin || origin.contains('*') {
        let problem = "must be one origin, without `*`, a path, a query or a fragment";
        return Err(E::custom(format_args!("{problem}; {remedy}")));
    }
    Ok(origin)
}

/// Returns true for the name of a provider or a webhook: 1 to 32 of a-z, 0-9, - and _.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    (1..=32).contains(&name.len()) && name.bytes().all(plain)
}
