//! JSON objects from outside: no member may occur twice at any depth, and the number of values is
//! limited.
//!
//! `serde_json::Value` silently keeps the last of duplicate members (RFC 8259 §4 leaves it open), so two
//! parsers of one document may see two different subjects. Here that is an error.
//!
//! A value takes up to a hundred times its length in memory: 64 KiB of `{"":0}` take 6 MiB. So the
//! parser counts values, and stops at the limit.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most values in JSON from a caller: every object, array, string, number, Boolean and `null`
/// counts as one. An `id_token` with two hundred groups has some 220, and one of the greatest
/// length has room for three hundred UUIDs.
pub const MAX_VALUES: usize = 400;
/// The most values in JSON from a provider, such as its key set, or from an operator. Its length is
/// limited, too.
pub const MAX_DOCUMENT_VALUES: usize = 4096;

/// A JSON object without duplicate members, and with a limited number of values.
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
    /// The text has more values than this limit.
    #[error("more than {0} values")]
    TooManyValues(usize),
}

impl Object {
    /// Parses one UTF-8 document from a caller that must be an object, with nothing after it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse_up_to(bytes, MAX_VALUES)
    }

    /// Like [`Object::parse`], for a document of a provider or an operator.
    pub fn document(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse_up_to(bytes, MAX_DOCUMENT_VALUES)
    }

    /// Parses a provider's claims with at most `max_values` values. A lone surrogate (`\ud83d`),
    /// left by a name that was cut inside an emoji, becomes U+FFFD: it keeps no user out, and no
    /// check takes U+FFFD for a valid character.
    pub fn told(bytes: &[u8], max_values: usize) -> Result<Self, Error> {
        let parse = |bytes: &[u8]| Self::parse_up_to(bytes, max_values);
        parse(bytes).or_else(|error| mended(bytes).map_or(Err(error), |whole| parse(&whole)))
    }

    fn parse_up_to(bytes: &[u8], max_values: usize) -> Result<Self, Error> {
        let strict = Strict {
            max_values,
            left: Cell::new(max_values),
            broken: Cell::new(None),
        };
        let mut document = serde_json::Deserializer::from_slice(bytes);
        let value = strict.deserialize(&mut document);
        match value.and_then(|value| document.end().map(|()| value)) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err(Error::NotAnObject),
            Err(error) => Err(strict.broken.take().unwrap_or(Error::Syntax(error))),
        }
    }

    /// Returns the member's value; `None` if it is absent or `null`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns true if the member is present, even if it is `null`.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
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

/// Replaces each lone surrogate in a JSON text by U+FFFD. Returns `None` if the text has no lone
/// surrogate.
fn mended(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut whole = text.to_vec();
    let mut at = 0;
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

/// The rules whose violations serde's errors cannot tell from a mistake in the syntax.
struct Strict {
    max_values: usize,
    /// The number of values that may still come.
    left: Cell<usize>,
    /// The rule that the document breaks.
    broken: Cell<Option<Error>>,
}

impl Strict {
    fn refuse<T, E: serde::de::Error>(&self, error: Error) -> Result<T, E> {
        let message = E::custom(&error);
        self.broken.set(Some(error));
        Err(message)
    }
}

impl<'de> DeserializeSeed<'de> for &Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return self.refuse(Error::TooManyValues(self.max_values)),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Strict {
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
                return self.refuse(Error::DuplicateMember);
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
        assert_eq!(
            Value::Object(object.0),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn lone_surrogates_in_provider_json_are_replaced_and_nothing_else() {
        for (text, read) in [
            (r#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (r#"{"a":"\ude00x"}"#, "\u{fffd}x"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (r#"{"a":"\ud83d\u0041"}"#, "\u{fffd}A"),
            (r#"{"a":"\\ud83d"}"#, r"\ud83d"),
            (r#"{"a":"\\\ud83d\n"}"#, "\\\u{fffd}\n"),
            (r#"{"a":"\\ud83d\ud83d"}"#, "\\ud83d\u{fffd}"),
        ] {
            let told = Object::told(text.as_bytes(), MAX_VALUES).unwrap();
            assert_eq!(told.str("a"), Some(read), "{text}");
            assert_eq!(
                Object::parse(text.as_bytes()).is_err(),
                read.contains('\u{fffd}'),
                "{text}"
            );
        }
        for text in [
            r#"{"a":"\ud83"}"#,
            r#"{"a":"\ud83d""#,
            r#"{"a":"\ud83d","a":1}"#,
            r"\ud83d",
        ] {
            assert!(Object::told(text.as_bytes(), MAX_VALUES).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_counted_whatever_they_are_and_however_deep() {
        // The object, the array, and the items.
        for item in ["0", "null", "true", "\"\"", "[]", "{}"] {
            let text = |items: usize| format!(r#"{{"a":[{}]}}"#, vec![item; items].join(","));
            assert!(
                Object::parse(text(MAX_VALUES - 2).as_bytes()).is_ok(),
                "{item}"
            );
            let refused = Object::parse(text(MAX_VALUES - 1).as_bytes());
            assert!(
                matches!(refused, Err(Error::TooManyValues(MAX_VALUES))),
                "{item} {refused:?}"
            );
            assert!(
                Object::document(text(MAX_VALUES - 1).as_bytes()).is_ok(),
                "{item}"
            );
            assert!(
                Object::document(text(MAX_DOCUMENT_VALUES).as_bytes()).is_err(),
                "{item}"
            );
        }
        let pairs = |pairs: usize| format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; pairs].join(","));
        assert!(Object::parse(pairs(MAX_VALUES / 2 - 1).as_bytes()).is_ok());
        assert!(Object::parse(pairs(MAX_VALUES / 2).as_bytes()).is_err());
    }
}
