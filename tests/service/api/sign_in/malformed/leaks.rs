//! Secrets that no error may reveal: tokens, hosts, paths, SQL, type names, other users' data.

use reqwest::Method;
use serde_json::{Value, json};

use super::PATH;
use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::provider::Behaviour;
use crate::support::token::{CLIENT_ID, ISSUER, claims, encode, with};

/// This mark is in every value that is sent, so that any echo shows.
const MARK: &str = "mark-9f3c";

/// Words that would reveal internals; no error needs them.
const TELLING: [&str; 16] = [
    MARK,
    "127.0.0.1",
    "localhost",
    "postgres",
    "SQL",
    "relation",
    "42P01",
    "reqwest",
    "serde",
    "rocket",
    "tokio",
    "vestibule::",
    ".rs",
    "/src/",
    "Err(",
    "line ",
];

/// Asserts that the error reveals nothing in its body and headers.
fn assert_silent(app: &App, answer: &Answer, sent: &str) {
    assert_problem(answer, answer.status.as_u16(), &answer.error());
    let told = format!("{} {:?}", answer.text, answer.headers);
    let host = app.provider.address().port().to_string();
    let shown = answer
        .text
        .replace(answer.header("X-Request-Id").unwrap(), "");
    for word in TELLING {
        assert!(
            !told.to_lowercase().contains(&word.to_lowercase()),
            "{word}: {told}"
        );
    }
    for part in
        sent.split('.')
            .filter(|part| !part.is_empty())
            .chain([host.as_str(), CLIENT_ID, ISSUER])
    {
        assert!(!shown.contains(part), "{part}: {told}");
    }
    assert!(!shown.contains("::") && !shown.contains('<'), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_not_told_back() {
    let app =
        App::start_with(|figment| figment.merge(("idp.allowed_domains", "example.com"))).await;
    let sound = with(
        claims(MARK, &format!("{MARK}@example.com")),
        &json!({ "hd": "example.com" }),
    );
    assert_eq!(app.sign_in(&sound).await.outcome(), "created");
    for (change, error) in [
        (json!({ "iss": MARK }), "issuer_mismatch"),
        (json!({ "aud": MARK }), "audience_mismatch"),
        (json!({ "azp": MARK }), "audience_mismatch"),
        (json!({ "exp": MARK }), "invalid_token"),
        (json!({ "nonce": MARK }), "nonce_mismatch"),
        (json!({ "sub": format!("{MARK}\0") }), "invalid_token"),
        (json!({ "hd": MARK }), "domain_not_allowed"),
        (
            json!({ "sub": "another", "email_verified": false }),
            "link_required",
        ),
    ] {
        let token = app.token(&with(sound.clone(), &change));
        let answer = app.post("idp", &json!({ "id_token": token })).await;
        assert_eq!(answer.error(), error, "{}", answer.text);
        assert_silent(&app, &answer, &token);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_says_of_itself_is_not_told_back() {
    let app = App::start().await;
    for (header, payload) in [
        (json!({ "alg": MARK }), json!({ "iss": MARK })),
        (json!({ "alg": MARK }), json!({ "aud": MARK })),
        (json!({ "alg": MARK }), json!({ "exp": MARK })),
        (
            json!({ "alg": "none", "kid": MARK }),
            json!({ "sub": MARK }),
        ),
    ] {
        let token = encode(&header.to_string(), &payload.to_string());
        let answer = app.post("idp", &json!({ "id_token": token })).await;
        assert_eq!(answer.status, 401, "{}", answer.text);
        assert_silent(&app, &answer, &token);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_request_is_not_told_back() {
    let app = App::start().await;
    for body in [
        format!("{{\"id_token\":\"{MARK}"),
        format!("{{\"id_token\":\"{MARK}\",\"id_token\":\"{MARK}\"}}"),
        json!({ "id_token": MARK }).to_string(),
        json!({ "id_token": [MARK] }).to_string(),
        json!({ "id_token": "e30.e30.e30", "nonce": [MARK] }).to_string(),
        json!({ "id_token": "e30.e30.e30", "device": { "name": [MARK] } }).to_string(),
        json!(MARK).to_string(),
    ] {
        assert_silent(
            &app,
            &app.send(Method::POST, PATH, Some("application/json"), body)
                .await,
            "",
        );
    }
    let media = format!("text/{MARK}");
    assert_silent(
        &app,
        &app.send(Method::POST, PATH, Some(&media), "{}").await,
        "",
    );
    for path in [
        format!("/api/v1/{MARK}"),
        format!("/api/v1/auth/oauth/{MARK}"),
        format!("/problems/{MARK}"),
    ] {
        assert_silent(&app, &app.send(Method::GET, &path, None, "").await, "");
        assert_silent(
            &app,
            &app.send(Method::POST, &path, Some("application/json"), "{}")
                .await,
            "",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_says_of_a_failure_is_not_passed_on() {
    let app = App::start().await;
    for code in [400, 401, 403, 404, 429, 500, 503] {
        let token = app.token(&json!(code));
        let body = format!(r#"{{"error":"{MARK}","error_description":"{token}"}}"#);
        app.provider.behave_for(&token, Behaviour::json(code, body));
        assert_silent(
            &app,
            &app.post("idp", &json!({ "id_token": token })).await,
            &token,
        );
    }
    for behaviour in [
        Behaviour::Redirect {
            code: 302,
            to: format!("https://{MARK}.example/"),
        },
        Behaviour::body("text/html", MARK),
        Behaviour::body("application/json", format!("{{\"{MARK}\"")),
        Behaviour::Json(json!({ "error": MARK })),
        Behaviour::RESET,
    ] {
        let token = app.token(&Value::Null);
        app.provider.behave_for(&token, behaviour);
        assert_silent(
            &app,
            &app.post("idp", &json!({ "id_token": token })).await,
            &token,
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_says_of_a_failure_is_not_passed_on() {
    let app = App::start().await;
    app.database
        .run("ALTER TABLE identities RENAME TO elsewhere")
        .await;
    let token = app.token(&claims(MARK, &format!("{MARK}@example.com")));
    let answer = app.post("idp", &json!({ "id_token": token })).await;
    assert_eq!(answer.error(), "internal_error", "{}", answer.text);
    assert_silent(&app, &answer, &token);
    assert!(!answer.text.contains("identities"), "{}", answer.text);

    app.database
        .run("ALTER TABLE elsewhere RENAME TO identities")
        .await;
    assert_eq!(
        app.post("idp", &json!({ "id_token": token }))
            .await
            .outcome(),
        "created"
    );
}
