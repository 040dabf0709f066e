//! Malformed bodies, each made from valid claims.

use serde_json::Value;

use super::behaviour::Behaviour;

const JSON: &str = "application/json";

/// Named answers of status 200 that are wrong in one way each, for tests that walk through them
/// all.
pub fn odd_bodies(claims: &Value) -> Vec<(&'static str, Behaviour)> {
    let text = claims.to_string();
    let half = &text[..text.floor_char_boundary(text.len() / 2)];
    let portal = "<!doctype html><title>Sign in to the network</title><form method=post></form>";
    let json = |bytes: &[u8]| Behaviour::body(JSON, bytes);
    vec![
        ("empty", json(b"")),
        ("null", json(b"null")),
        ("true", json(b"true")),
        ("a number", json(b"1")),
        ("an empty list", json(b"[]")),
        ("the claims in a list", json(format!("[{text}]").as_bytes())),
        ("a string", json(br#""x""#)),
        ("an empty object", json(b"{}")),
        ("truncated", json(half.as_bytes())),
        ("followed by garbage", json(format!("{text}x").as_bytes())),
        ("twice", json(format!("{text}{text}").as_bytes())),
        (
            "not a number",
            json(replacing(claims, r#""exp":NaN"#).as_bytes()),
        ),
        (
            "a number too large",
            json(replacing(claims, r#""exp":1e999"#).as_bytes()),
        ),
        ("nested 100 000 deep", nested(claims, 100_000)),
        ("nested 20 000 deep", nested(claims, 20_000)),
        ("every key twice", json(doubled(claims, &text).as_bytes())),
        (
            "a byte order mark",
            json(format!("\u{feff}{text}").as_bytes()),
        ),
        ("UTF-16", json(&utf16(&text))),
        ("invalid UTF-8", json(&invalid_utf8(claims))),
        ("a NUL byte", json(format!("{text}\0").as_bytes())),
        ("a captive portal", Behaviour::body("text/html", portal)),
        ("JSON as plain text", Behaviour::body("text/plain", text)),
    ]
}

/// The claims with one more whose value is nested that deep: two bytes a level, balanced.
fn nested(claims: &Value, depth: usize) -> Behaviour {
    let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let text = with(&claims.to_string(), &format!(r#""deep":{value}"#));
    Behaviour::body(JSON, text)
}

/// The object with one more member at its front, as text, for no JSON value could hold it.
fn with(object: &str, member: &str) -> String {
    let rest = object.strip_prefix('{').unwrap_or(object);
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!("{{{member}{comma}{rest}")
}

/// The claims with this member in place of the one of the same name.
fn replacing(claims: &Value, member: &str) -> String {
    let mut others = claims.clone();
    let key = member.split('"').nth(1).unwrap_or_default();
    if let Some(others) = others.as_object_mut() {
        others.remove(key);
    }
    with(&others.to_string(), member)
}

/// The object with each key twice: the first time with a value that is not the claimed one.
fn doubled(claims: &Value, text: &str) -> String {
    let keys = claims.as_object().into_iter().flat_map(|map| map.keys());
    keys.fold(text.to_owned(), |text, key| {
        let key = Value::from(key.as_str());
        with(&text, &format!(r#"{key}:"another""#))
    })
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// The claims with a subject that is a truncated sequence.
fn invalid_utf8(claims: &Value) -> Vec<u8> {
    let mut bytes = replacing(claims, r#""sub":"?""#).into_bytes();
    if let Some(mark) = bytes.iter_mut().find(|byte| **byte == b'?') {
        *mark = 0xc3;
    }
    bytes
}
