//! The wire format: the bytes of each type of message.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;

use super::{SESSION, with_receivers};
use crate::support::receiver::{Received, Receiver, body};

/// Events, with a reason and a detail in which `ID` is the identity of the event's user, and the
/// user's state.
const EVENTS: [(&str, Option<&str>, &str, State); 25] = [
    ("user_created", None, "null", State::Whole),
    ("user_created", None, "null", State::Bare),
    (
        "user_updated",
        None,
        r#"{"fields": ["name"]}"#,
        State::Whole,
    ),
    (
        "email_lost",
        Some("email_proven"),
        r#"{"to": "ID"}"#,
        State::Bare,
    ),
    (
        "claims_changed",
        None,
        r#"{"claims": {"plan": "pro"}}"#,
        State::Whole,
    ),
    (
        "user_disabled",
        None,
        r#"{"reason": "they asked"}"#,
        State::Disabled,
    ),
    (
        "user_enabled",
        None,
        r#"{"reason": "they asked"}"#,
        State::Whole,
    ),
    ("user_deleted", None, r#"{"session_count": 1}"#, State::Gone),
    (
        "users_merged",
        None,
        r#"{"from": "ID", "from_claims": {"seats": 5, "a": 1.50}}"#,
        State::Whole,
    ),
    ("users_merged", None, r#"{"from": "ID"}"#, State::Bare),
    (
        "identity_linked",
        None,
        r#"{"identity_id": "ID"}"#,
        State::Whole,
    ),
    (
        "identity_linked",
        Some("same_provider"),
        "null",
        State::Whole,
    ),
    (
        "identity_unlinked",
        None,
        r#"{"identity_id": "00000000-0000-7000-8000-00000000dead"}"#,
        State::Bare,
    ),
    (
        "identity_moved",
        None,
        r#"{"identity_id": "ID", "from": "00000000-0000-7000-8000-00000000dead"}"#,
        State::Whole,
    ),
    (
        "identity_held",
        None,
        r#"{"identity_id": "ID", "by": "ID"}"#,
        State::Disabled,
    ),
    (
        "identity_released",
        None,
        r#"{"identity_id": "ID"}"#,
        State::Whole,
    ),
    ("signed_out", Some("local"), "null", State::Bare),
    ("signed_out", Some("others"), "null", State::Bare),
    ("signed_out", Some("global"), "null", State::Bare),
    (
        "session_ended",
        None,
        r#"{"reason": "they asked"}"#,
        State::Bare,
    ),
    ("sessions_ended", None, "null", State::Bare),
    ("refresh_token_replayed", None, "null", State::Bare),
    (
        "provider_event",
        Some("account_disabled"),
        r#"{"identity_id": "ID", "cause": "hijacking", "at": "2026-01-31T09:26:53Z", "sessions": 2}"#,
        State::Disabled,
    ),
    (
        "provider_event",
        Some("email_disabled"),
        r#"{"identity_id": "ID", "at": "2026-01-31T09:26:53Z"}"#,
        State::Whole,
    ),
    (
        "provider_event",
        Some("account_deleted"),
        r#"{"identity_id": "00000000-0000-7000-8000-00000000dead", "at": "2026-01-31T09:26:53Z", "sessions": 1}"#,
        State::Gone,
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// With all that a user can have.
    Whole,
    /// Disabled, with an identity that is suspended.
    Disabled,
    /// With what a user must have.
    Bare,
    Gone,
}

fn id(kind: u128, number: u128) -> Uuid {
    Uuid::from_u128(0x7000_8000_0000_0000_0000 + (kind << 32) + number)
}

async fn create(pool: &PgPool, number: u128, state: State) {
    let claims = r#"{"ü": "\"\\\u001f</", "roles": ["a", "b"], "n": 1.50, "large": 12345678901234567890.5, "o": {}, "no": null}"#;
    let whole = state != State::Bare;
    run!(
        pool,
        "INSERT INTO users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, claims)
         VALUES ($1, $2, $3, $4, $5, '2026-11-22T18:30:05+00', '2026-11-22T20:30:05.1234+02', $6::text::timestamptz, $7::text::jsonb)",
        id(1, number),
        whole.then(|| format!("{number}@example.com")),
        whole,
        whole.then_some("Ada \"É\" \\ \u{1}\u{7f}\t<b>/😀"),
        whole.then_some("https://example.com/a?b&c"),
        (state == State::Disabled).then_some("2026-11-23T00:00:00.000001+00"),
        whole.then_some(claims)
    );
    run!(
        pool,
        "INSERT INTO identities (id, user_id, provider, subject, email, reported_at)
         VALUES ($1, $2, 'idp', $3, $4, $5::text::timestamptz)",
        id(2, number),
        id(1, number),
        format!("subject \"{number}\""),
        whole.then_some("Ada@example.com"),
        (state == State::Disabled).then_some("2026-11-23T00:00:00+00")
    );
    if whole {
        run!(
            pool,
            "INSERT INTO identities (id, user_id, provider, subject) VALUES ($1, $2, 'second', $3)",
            id(3, number),
            id(1, number),
            format!("other {number}")
        );
    }
}

/// Returns the message with each digit of its time replaced by 0: it is the time of the change.
fn without_time(message: &Received) -> String {
    let time = message.json()["timestamp"].as_str().unwrap().to_owned();
    OffsetDateTime::parse(&time, &Rfc3339).unwrap();
    let format = time.replace(|c: char| c.is_ascii_digit(), "0");
    message.body.replacen(&time, &format, 1)
}

/// To accept a changed format, run it with `UPDATE_MESSAGES=1`.
#[tokio::test(flavor = "multi_thread")]
async fn messages_keep_their_bytes() {
    let receiver = Receiver::start().await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let pool = &app.database.pool;
    for (number, (kind, reason, detail, state)) in (0..).zip(EVENTS) {
        if state != State::Gone {
            create(pool, number, state).await;
        }
        run!(
            pool,
            "INSERT INTO events (id, kind, user_id, session_id, reason, provider, ip, actor, detail)
             VALUES ($1, $2, $3, $4, $5, 'idp', '192.0.2.7', 'staff@example.com', $6::text::jsonb)",
            id(4, number),
            kind,
            id(1, number),
            SESSION,
            reason,
            detail.replace("ID", &id(2, number).to_string())
        );
    }
    let mut messages = receiver.received_all(EVENTS.len()).await;
    messages.sort_by_key(|message| message.header("webhook-id").to_owned());
    let key = app.api_key("backend", KeyRole::Admin).await;
    let path = "/api/v1/admin/webhooks/shop/test";
    let tested = app.as_user(&key, Method::POST, path, None).await;
    assert_eq!(tested.status, 200, "{}", tested.text);
    messages.extend(receiver.received().pop());
    let mut sent = String::new();
    for message in &messages {
        writeln!(sent, "{}", without_time(message)).unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/webhooks/messages.jsonl");
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        fs::write(&file, &sent).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    for (sent, expected) in sent.lines().zip(expected.lines()) {
        assert_eq!(sent, expected);
    }
    assert_eq!(sent.lines().count(), expected.lines().count());
}

#[test]
fn the_documented_example_is_a_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/webhooks.md")).unwrap();
    let (_, example) = page.split_once("\nAn example:\n\n").unwrap();
    let example: Value = serde_json::from_str(example.split("\n\n").next().unwrap()).unwrap();
    let user = &example["data"]["user"];
    let body = body(
        example["type"].as_str().unwrap().to_owned(),
        user["id"].as_str().unwrap().parse().unwrap(),
        None,
        OffsetDateTime::parse(example["timestamp"].as_str().unwrap(), &Rfc3339).unwrap(),
        json!({ "user": user }).to_string(),
    );
    assert_eq!(body, example);
}
