//! JSON objects from outside, in which no member may occur twice at any depth.
//!
//! `serde_json::Value` silently keeps the last of duplicate members (RFC 8259 §4 leaves it open), so two
//! parsers of one document may see two different subjects. Here that is an error.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON object without duplicate members.
#[derive(Debug, Clone, Default)]
pub struct Object(Map<String, Value>);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not JSON, or is deeper than 128 levels.
    #[error(transparent)]
    Syntax(serde_json::Error),
    #[error("not an object")]
    NotAnObject,
    /// An object has a member twice.
    #[error("duplicate member")]
    DuplicateMember,
}

impl Object {
    /// Parses one UTF-8 document that must be an object, with nothing after it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let duplicate = Cell::new(false);
        let mut document = serde_json::Deserializer::from_slice(bytes);
        let value = Unique(&duplicate).deserialize(&mut document);
        match value.and_then(|value| document.end().map(|()| value)) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err(Error::NotAnObject),
            Err(_) if duplicate.get() => Err(Error::DuplicateMember),
            Err(error) => Err(Error::Syntax(error)),
        }
    }

    /// Parses a provider's claims. A lone surrogate (`\ud83d`), left by a name that was cut inside an emoji,
    /// becomes U+FFFD: it keeps no user out, and no check takes U+FFFD for a valid character.
    pub fn told(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes).or_else(|error| mended(bytes).map_or(Err(error), |whole| Self::parse(&whole)))
    }

    /// Returns the member's value; `None` if it is absent or `null`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns true if the member is present, even if it is `null`.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

impl From<Object> for Map<String, Value> {
    fn from(object: Object) -> Self {
        object.0
    }
}

/// Replaces each lone surrogate in a JSON text by U+FFFD. Returns `None` if there is none.
fn mended(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut whole, mut at) = (text.to_vec(), 0);
    while at < text.len() {
        at += match (text[at], unit(at), unit(at + 6)) {
            (b'\\', Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (b'\\', Some(0xd800..=0xdfff), _) => {
                whole[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            (b'\\', ..) => 2,
            _ => 1,
        };
    }
    (whole != text).then_some(whole)
}

#[derive(Clone, Copy)]
struct Unique<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if map.insert(name, members.next_value_seed(self)?).is_some() {
                self.0.set(true);
                return Err(A::Error::custom("duplicate member"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_read_as_what_it_is() {
        let text = r#"{"a":[null,true,-1,1,0.5,"x","\n",[],{"b":{}}]}"#;
        let object = Object::parse(text.as_bytes()).unwrap();
        assert_eq!(Value::Object(object.0), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn half_a_character_of_a_providers_is_replaced_and_nothing_else_changed() {
        for (text, read) in [
            (r#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (r#"{"a":"\ude00x"}"#, "\u{fffd}x"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (r#"{"a":"\ud83d\u0041"}"#, "\u{fffd}A"),
            (r#"{"a":"\\ud83d"}"#, r"\ud83d"),
            (r#"{"a":"\\\ud83d\n"}"#, "\\\u{fffd}\n"),
            (r#"{"a":"\\ud83d\ud83d"}"#, "\\ud83d\u{fffd}"),
        ] {
            assert_eq!(Object::told(text.as_bytes()).unwrap().str("a"), Some(read), "{text}");
            assert_eq!(Object::parse(text.as_bytes()).is_err(), read.contains('\u{fffd}'), "{text}");
        }
        for text in [r#"{"a":"\ud83"}"#, r#"{"a":"\ud83d""#, r#"{"a":"\ud83d","a":1}"#, r"\ud83d"] {
            assert!(Object::told(text.as_bytes()).is_err(), "{text}");
        }
    }
}
