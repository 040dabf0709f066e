//! Lists, switches and numbers, which environment variables can only give as text.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Deserializes a list, or one text with commas. No item may be blank.
pub(super) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct List;
    impl<'de> Visitor<'de> for List {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of strings, or one comma-separated string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            text.split(',').map(item).collect()
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(text) = seq.next_element::<String>()? {
                items.push(item(&text)?);
            }
            Ok(items)
        }
    }
    deserializer.deserialize_any(List)
}

fn item<E: Error>(text: &str) -> Result<String, E> {
    let text = text.trim();
    if text.is_empty() || text.contains(|c: char| c == ',' || c.is_whitespace() || c.is_control()) {
        return Err(E::custom("contains an item that is empty or contains whitespace"));
    }
    Ok(text.to_owned())
}

/// Deserializes a value that may also be written as text.
pub(super) fn parsed<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr + Deserialize<'de>,
{
    struct Parsed<T>(PhantomData<T>);
    impl<'de, T: FromStr + Deserialize<'de>> Visitor<'de> for Parsed<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match std::any::type_name::<T>() {
                "bool" => "true or false",
                _ => "a non-negative integer",
            })
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
            self.visit_str(if value { "true" } else { "false" })
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.trim().parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Other("text"), &self))
        }
    }
    deserializer.deserialize_any(Parsed(PhantomData)).map(Some)
}

/// Deserializes seconds, with or without the unit: `60` or `60s`.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Seconds;
    impl Visitor<'_> for Seconds {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("seconds, such as 60 or \"60s\"")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<u32, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<u32, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u32, E> {
            let digits = text.trim().trim_end_matches('s').trim_end();
            digits.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Other("text"), &self))
        }
    }
    deserializer.deserialize_any(Seconds).map(Some)
}
