//! Example requests and answers. The tests check them against the schemas.

use serde_json::{Value, json};

const USER: &str = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e11";
const SESSION: &str = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e13";
const THEN: &str = "2026-01-31T09:26:53.589793Z";

/// Returns a user.
pub(super) fn user() -> Value {
    json!({
        "id": USER, "email": "ada@example.com", "email_verified": true, "name": "Ada Lovelace", "picture": null,
        "created_at": THEN, "updated_at": THEN, "disabled_at": null, "last_seen_on": "2026-02-01",
        "claims": { "roles": ["editor"] },
        "identities": [{
            "id": "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e12", "provider": "google", "subject": "110169484474386276334",
            "email": "ada@example.com", "created_at": THEN, "suspended_at": null,
            "suspended_reason": null,
        }],
    })
}

/// Returns a page of users.
pub(super) fn users() -> Value {
    json!({ "users": [user()], "next": null })
}

/// Returns a user to create.
pub(super) fn new_user() -> Value {
    json!({
        "email": "ada@example.com", "email_verified": true, "name": "Ada Lovelace", "claims": { "roles": ["editor"] },
        "identities": [{ "provider": "google", "subject": "110169484474386276334" }],
    })
}

/// Returns a user's sessions.
pub(super) fn sessions() -> Value {
    json!({ "sessions": [{
        "id": SESSION, "provider": "google", "created_at": THEN, "last_used_at": "2026-02-01T07:00:00.5Z",
        "ip": "203.0.113.7", "user_agent": "VestibuleDemo/1.4 (Android 17)",
        "device_name": "Ada's phone", "device_platform": "Android 17",
    }] })
}

fn event() -> Value {
    json!({
        "id": SESSION, "created_at": THEN, "kind": "user_created", "reason": null, "user_id": USER,
        "session_id": null, "provider": "google", "email": null, "actor": null, "ip": "203.0.113.7",
        "user_agent": "VestibuleDemo/1.4 (Android 17)", "request_id": "0199a6c2f0c47d51b3c59c8d2f6a7e10",
        "detail": null,
    })
}

/// Returns a page of a user's events.
pub(super) fn user_events() -> Value {
    json!({ "events": [event()], "next": null })
}

/// Returns a part of the feed.
pub(super) fn feed() -> Value {
    json!({ "events": [event()], "next": SESSION })
}

/// Returns a replay of a webhook.
pub(super) fn replay_request() -> Value {
    json!({ "reason": "the receiver is repaired" })
}

/// Returns the answer to it.
pub(super) fn replayed() -> Value {
    json!({ "due": 70, "of": 85 })
}

/// Returns the answer to a test of a webhook.
pub(super) fn tested() -> Value {
    json!({ "accepted": false, "failure": "the answer is 401" })
}
