//! Headers of every answer, and those that are never there.

use reqwest::Method;
use serde_json::json;

use super::PATH;
use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::raw::Raw;
use crate::support::token::claims;

/// Sends a request with further headers, each with its line break.
async fn send(app: &App, method: Method, headers: &[u8], body: &str) -> Answer {
    let length = body.len();
    let mut request =
        format!("{method} {PATH} HTTP/1.1\r\nHost: vestibule\r\nContent-Length: {length}\r\n").into_bytes();
    request.extend_from_slice(headers);
    request.extend_from_slice(format!("\r\n{body}").as_bytes());
    let mut raw = Raw::connect(app).await;
    raw.send(request).await;
    raw.answer().await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_not_to_be_cached_or_guessed_at_and_names_no_server() {
    let app = App::start().await;
    for outcome in ["created", "signed_in"] {
        let answer = app.sign_in(&claims("subject-1", "ada@example.com")).await;
        assert_eq!(answer.outcome(), outcome, "{}", answer.text);
        assert_eq!(answer.header("Cache-Control"), Some("no-store"));
        assert_eq!(answer.header("Content-Type"), Some("application/json; charset=utf-8"));
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(answer.header("Server"), None);
        assert_eq!(answer.header("Set-Cookie"), None);
        assert!(!answer.header("X-Request-Id").unwrap_or_default().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_has_an_id_of_its_own_that_the_caller_does_not_choose() {
    let app = App::start().await;
    let chosen = "chosen-by-the-caller";
    let headers = format!("Content-Type: application/json\r\nX-Request-Id: {chosen}\r\n");
    let mut ids = Vec::new();
    for body in ["{}", "{", "[]"] {
        let answer = send(&app, Method::POST, headers.as_bytes(), body).await;
        assert_problem(&answer, 400, "invalid_request");
        ids.push(answer.header("X-Request-Id").unwrap().to_owned());
    }
    ids.push(chosen.to_owned());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_origin_may_call_the_service() {
    let app = App::start().await;
    let token = app.token(&claims("subject-1", "ada@example.com"));
    for origin in ["https://evil.example", "null", "http://127.0.0.1:8000"] {
        let preflight = format!(
            "Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n",
        );
        let simple = format!("Origin: {origin}\r\nContent-Type: text/plain\r\n");
        let json_body = format!("Origin: {origin}\r\nContent-Type: application/json\r\n");
        let body = json!({ "id_token": token }).to_string();
        let answers = [
            (405, send(&app, Method::OPTIONS, preflight.as_bytes(), "").await),
            (415, send(&app, Method::POST, simple.as_bytes(), &body).await),
            (400, send(&app, Method::POST, json_body.as_bytes(), "{}").await),
        ];
        for (status, answer) in &answers {
            assert_problem(answer, *status, &answer.error());
        }
        let signed_in = send(&app, Method::POST, json_body.as_bytes(), &body).await;
        assert!(signed_in.status.is_success(), "{}", signed_in.text);
        for answer in answers.iter().map(|(_, answer)| answer).chain([&signed_in]) {
            let cors = answer.headers.keys().find(|name| name.as_str().starts_with("access-control-"));
            assert_eq!(cors, None, "{origin}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_user_agent_is_no_reason_to_fail_and_is_kept_clean() {
    let app = App::start().await;
    let long = "a".repeat(5000);
    for (number, (agent, kept)) in [
        (&b"App/1.0 (\xc3\xbc)"[..], Some("App/1.0 (ü)")),
        (b"App\t1.0", Some("App1.0")),
        (b"\xff\xfe", None),
        (b"", Some("")),
        (long.as_bytes(), Some(&long[..256])),
    ]
    .into_iter()
    .enumerate()
    {
        let token = app.token(&claims(&format!("subject-{number}"), ""));
        let headers = [b"Content-Type: application/json\r\nUser-Agent: ", agent, b"\r\n"].concat();
        let answer = send(&app, Method::POST, &headers, &json!({ "id_token": token }).to_string()).await;
        assert_eq!(answer.outcome(), "created", "{agent:?} {}", answer.text);
        let stored: Option<String> =
            app.database.value("SELECT user_agent FROM events ORDER BY created_at DESC LIMIT 1").await;
        assert_eq!(stored.as_deref(), kept, "{agent:?}");
    }
}
