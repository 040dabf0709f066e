//! Headers that every response has or must not have.

use serde_json::json;

use super::head;
use crate::support::app::App;
use crate::support::raw::Raw;
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_response_forbids_caching_and_sniffing() {
    let app = App::start().await;
    for outcome in ["created", "signed_in"] {
        let answer = app.sign_in(&claims("subject-1", "ada@example.com")).await;
        assert_eq!(answer.outcome(), outcome, "{}", answer.text);
        assert_eq!(answer.header("Cache-Control"), Some("no-store"));
        assert_eq!(
            answer.header("Content-Type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(answer.header("Server"), None);
        assert_eq!(answer.header("Set-Cookie"), None);
        assert!(!answer.header("X-Request-Id").unwrap_or_default().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_user_agent_is_accepted_and_stored_cleaned() {
    let app = App::start().await;
    let long = "a".repeat(5000);
    for (number, (agent, kept)) in [
        (&b"App/1.0 (\xc3\xbc)"[..], Some("App/1.0 (ü)")),
        (b"App\t1.0", Some("App1.0")),
        (b"App/1.0 (Jos\xe9)", Some("App/1.0 (Jos\u{fffd})")),
        (b"", Some("")),
        (long.as_bytes(), Some(&long[..256])),
    ]
    .into_iter()
    .enumerate()
    {
        let token = app.token(&claims(&format!("subject-{number}"), ""));
        let lines = [head().as_bytes(), b"User-Agent: ", agent, b"\r\n"].concat();
        let answer = Raw::ask(&app, lines, &json!({ "id_token": token }).to_string()).await;
        assert_eq!(answer.outcome(), "created", "{agent:?} {}", answer.text);
        let stored: Option<String> = app
            .database
            .value("SELECT user_agent FROM events ORDER BY created_at DESC LIMIT 1")
            .await;
        assert_eq!(stored.as_deref(), kept, "{agent:?}");
    }
}
