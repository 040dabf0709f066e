//! What a token says of itself refuses it before anyone is asked, and lets nobody in.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::token::{CLIENT_ID, ISSUER, claims, encode, now, with};

const RS256: &str = r#"{"alg":"RS256","typ":"JWT"}"#;

/// The token is refused so, though its provider would have vouched for it, and nobody was asked.
async fn assert_refused_unasked(app: &App, header: &str, payload: &str, error: &str) {
    let token = encode(header, payload);
    app.provider.accept(&token, claims("subject-1", "ada@example.com"));
    let answer = app.post("idp", &json!({ "id_token": token })).await;
    assert_eq!(answer.error(), error, "{header} {payload} {}", answer.text);
    assert_problem(&answer, 401, error);
    assert_eq!(app.provider.calls(), 0, "{header} {payload}");
    assert_eq!(app.database.rows().await, [0, 0, 0], "{header} {payload}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsigned_token_is_refused_without_asking_the_provider() {
    let app = App::start().await;
    let sound = claims("subject-1", "ada@example.com").to_string();
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"noNE"}"#,
        r#"{"alg":"NONE","typ":"JWT"}"#,
        r#"{"alg":null}"#,
        r#"{"alg":["RS256"]}"#,
        r#"{"alg":256}"#,
        r#"{"typ":"JWT"}"#,
        "{}",
    ] {
        assert_refused_unasked(&app, header, &sound, "invalid_token").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_parts_are_no_json_objects_is_refused_without_asking_the_provider() {
    let app = App::start().await;
    let sound = claims("subject-1", "ada@example.com").to_string();
    for part in ["", "null", "[]", "\"RS256\"", "{", "{}{}", r#"{"alg":"RS256","alg":"none"}"#] {
        assert_refused_unasked(&app, part, &sound, "invalid_token").await;
        assert_refused_unasked(&app, RS256, part, "invalid_token").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_refused_without_asking_the_provider() {
    let app = App::start().await;
    for expiry in [json!(now() - 61), json!((now() - 61).to_string()), json!(0), json!(-1)] {
        let payload = json!({ "exp": expiry }).to_string();
        assert_refused_unasked(&app, RS256, &payload, "token_expired").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_issuer_or_for_another_application_is_refused_without_asking_the_provider() {
    let app = App::start().await;
    for (payload, error) in [
        (json!({ "iss": "https://second.example" }), "issuer_mismatch"),
        (json!({ "iss": format!("{ISSUER}/") }), "issuer_mismatch"),
        (json!({ "aud": "client-2.example" }), "audience_mismatch"),
        (json!({ "aud": [CLIENT_ID, "client-2.example"] }), "audience_mismatch"),
        (json!({ "aud": CLIENT_ID, "azp": "client-2.example" }), "audience_mismatch"),
    ] {
        assert_refused_unasked(&app, RS256, &payload.to_string(), error).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_says_of_itself_lets_nobody_in() {
    let app = App::start().await;
    let own_words = claims("subject-1", "ada@example.com").to_string();
    for header in [RS256, r#"{"alg":"HS256"}"#, r#"{"alg":"ES256","jku":"https://evil.example/keys"}"#] {
        // The provider does not know this token: it answers 400.
        let answer = app.post("idp", &json!({ "id_token": encode(header, &own_words) })).await;
        assert_problem(&answer, 401, "invalid_token");
    }
    assert_eq!(app.provider.calls(), 3);
    assert_eq!(app.database.rows().await, [0, 0, 0]);

    // When it does, its answer counts and not the token's own words.
    let token = encode(RS256, &own_words);
    app.provider.accept(&token, claims("subject-2", "grace@example.com"));
    let answer = app.post("idp", &json!({ "id_token": token })).await;
    assert_eq!(answer.json()["identity"]["subject"], "subject-2");
    assert_eq!(answer.json()["user"]["email"], "grace@example.com");
}

/// What staff can read of a refused sign-in, as soon as it is written.
async fn refusal(app: &App, request_id: &str) -> (String, Option<String>, Value) {
    let recorded = async {
        loop {
            let row: Option<(String, Option<String>, String)> = sqlx::query_as(
                "SELECT reason, email, detail::text FROM events
                 WHERE request_id = $1 AND kind = 'sign_in_refused'",
            )
            .bind(request_id)
            .fetch_optional(&app.database.pool)
            .await
            .unwrap();
            if let Some((reason, email, detail)) = row {
                break (reason, email, serde_json::from_str(&detail).unwrap());
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), recorded).await.expect("the refusal is recorded")
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_can_see_what_a_refused_token_claimed_to_be() {
    let app = App::start().await;
    let foreign = json!({ "aud": "client-2.example" });
    let payload = with(claims("subject-1", "ada@example.com"), &foreign).to_string();
    let answer = app.post("idp", &json!({ "id_token": encode(RS256, &payload) })).await;
    let (reason, email, detail) = refusal(&app, answer.header("X-Request-Id").unwrap()).await;
    assert_eq!((reason.as_str(), email.as_deref()), ("audience_mismatch", Some("ada@example.com")));
    assert_eq!(detail, json!({ "claimed_issuer": ISSUER, "claimed_audience": "client-2.example" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_that_claims_what_cannot_be_stored_is_recorded_all_the_same() {
    let app = App::start().await;
    let odd = json!({ "email": "a\0da\u{1b}@example.com", "iss": "\0", "aud": "a".repeat(5000) });
    let answer = app.post("idp", &json!({ "id_token": encode(RS256, &odd.to_string()) })).await;
    assert_problem(&answer, 401, "issuer_mismatch");
    let (reason, email, detail) = refusal(&app, answer.header("X-Request-Id").unwrap()).await;
    assert_eq!((reason.as_str(), email.as_deref()), ("issuer_mismatch", Some("ada@example.com")));
    assert_eq!(detail["claimed_audience"], "a".repeat(255));
}
