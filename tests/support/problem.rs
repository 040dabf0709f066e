//! Assertions about the form of every error (RFC 9457).

use vestibule::web::problem::{Entry, ErrorCode};

use super::app::Answer;

/// All members of a problem, in alphabetical order, except the optional `reason` and `merged_into`.
const MEMBERS: [&str; 6] = ["detail", "error", "request_id", "status", "title", "type"];

/// The catalogue's entries of all errors.
pub fn catalogue() -> Vec<Entry> {
    ErrorCode::all().map(ErrorCode::entry).collect()
}

/// Asserts that a response is that error, in the form of every error.
#[track_caller]
pub fn assert_problem(answer: &Answer, status: u16, error: &str) {
    let text = &answer.text;
    let body = answer.json();
    assert_eq!(
        (answer.status.as_u16(), answer.error().as_str()),
        (status, error),
        "{text}"
    );
    let mut members: Vec<_> = body
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    members.sort_unstable();
    let merged = error == "user_not_found" || body["reason"] == "user_merged";
    members.retain(|name| *name != "reason" && !(*name == "merged_into" && merged));
    assert_eq!(members, MEMBERS, "{text}");
    assert_eq!(body["status"], status, "{text}");
    assert_eq!(body["type"], format!("/problems/{error}"), "{text}");
    let entry = catalogue()
        .into_iter()
        .find(|entry| entry.error == error)
        .expect("a known error");
    // A bad `id_token` is 422 instead of 401 where an access token is the credential.
    let beside_a_bearer = entry.status == 401 && status == 422;
    assert!(entry.status == status || beside_a_bearer, "{text}");
    let known = |reason: &serde_json::Value| {
        entry
            .reasons()
            .iter()
            .any(|known| *reason == known.to_string())
    };
    assert!(body.get("reason").is_none_or(known), "{text}");
    assert_eq!(&body["title"], entry.title, "{text}");
    let detail = body["detail"].as_str().unwrap_or_default();
    assert!(!detail.is_empty() && detail.len() <= 250, "{text}");
    assert_headers(answer);
}

/// Asserts the headers of every error, and the headers that its status requires.
#[track_caller]
fn assert_headers(answer: &Answer) {
    let text = &answer.text;
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/problem+json; charset=utf-8"),
        "{text}"
    );
    assert_eq!(answer.header("Cache-Control"), Some("no-store"), "{text}");
    assert_eq!(
        answer.header("X-Content-Type-Options"),
        Some("nosniff"),
        "{text}"
    );
    assert_eq!(answer.header("Server"), None, "{text}");
    let request_id = answer.header("X-Request-Id").unwrap_or_default();
    assert!(!request_id.is_empty(), "{text}");
    assert_eq!(answer.json()["request_id"], request_id, "{text}");
    let status = answer.status.as_u16();
    let wait = answer
        .header("Retry-After")
        .map(|seconds| seconds.parse().unwrap_or_default());
    let waits = wait.is_some_and(|seconds: u32| (1..=60).contains(&seconds));
    assert_eq!(waits, matches!(status, 429 | 503), "{text}");
    assert_eq!(answer.header("Allow").is_some(), status == 405, "{text}");
}
