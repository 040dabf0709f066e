//! Bodies that are not a clean answer.

use serde_json::Value;

use crate::provider::client::{Client, claims, provider};
use crate::support::provider::{Behaviour, nested, odd_bodies};

/// Bodies that a strict reader of one JSON object can only refuse for their meaning.
const WELL_FORMED: [&str; 8] = [
    "null",
    "true",
    "a number",
    "an empty list",
    "the claims in a list",
    "a string",
    "an empty object",
    "JSON as plain text",
];

#[tokio::test]
async fn every_odd_body_arrives_as_it_is() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    for (name, behaviour) in odd_bodies(&claims()) {
        let Behaviour::RawBody { bytes, content_type } = behaviour.clone() else {
            panic!("{name} is no raw body");
        };
        provider.behave_once(behaviour);
        let answer = client.get("good").await;
        assert!(answer.code == 200 && answer.body == bytes, "{name}");
        assert_eq!(answer.header("content-type"), Some(content_type.as_str()));
    }
    assert_eq!(client.get("good").await.json(), claims());
}

#[test]
fn every_odd_body_is_as_broken_as_its_name_says() {
    for (name, behaviour) in odd_bodies(&claims()) {
        let Behaviour::RawBody { bytes, .. } = behaviour else {
            panic!("{name} is no raw body");
        };
        let read = serde_json::from_slice::<Value>(&bytes);
        // A reader that keeps the last of two keys sees the claims: that is the trap.
        let trap = name == "every key twice";
        assert_eq!(read.is_ok(), trap || WELL_FORMED.contains(&name), "{name}: {read:?}");
        if trap {
            assert_eq!(read.expect("just checked"), claims());
            assert_eq!(bytes.windows(6).filter(|part| part == br#""sub":"#).count(), 2);
        }
    }
}

#[test]
fn nesting_is_balanced_and_as_deep_as_asked() {
    let Behaviour::RawBody { bytes, .. } = nested(&claims(), 5) else {
        panic!("no raw body");
    };
    let read: Value = serde_json::from_slice(&bytes).expect("five levels are fine");
    assert_eq!(read["deep"].to_string(), "[[[[[]]]]]");
    assert_eq!(read["sub"], "ada");
}

#[tokio::test]
async fn raw_bytes_replace_the_whole_answer_and_end_it() {
    for garbage in [&b"\x15\x03\x01\x00\x02\x02\x46"[..], b"HTTP/1.1 200", b"SSH-2.0-x\r\n", b""] {
        let provider = provider(Behaviour::RawBytes(garbage.to_vec())).await;
        let mut client = Client::to(&provider).await;
        client.ask("good").await;
        let (bytes, end) = client.rest().await;
        assert!(end.is_ok() && bytes == garbage, "{bytes:?}");
    }
}

#[tokio::test]
async fn http_0_9_is_the_body_alone() {
    let provider = provider(Behaviour::Http09).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let (bytes, end) = client.rest().await;
    assert!(end.is_ok() && bytes == claims().to_string().as_bytes());
}
