//! `nonce` (OIDC Core §3.1.3.7, 11): in the form that counts, on both sides or on none.

use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{claims, with};

/// `printf %s raw-nonce | sha256sum`
const RAW: &str = "raw-nonce";
const SHA256: &str = "2c5d107938053a2275f022c153c9a71f65ee07754b8bca543ee97a0c3cc66990";

async fn sign_in(app: &App, provider: &str, sent: &Value, held: &Value) -> Answer {
    let mut claims = claims("subject-1", "ada@example.com");
    if provider != "idp" {
        claims["iss"] = format!("https://{provider}.example").into();
    }
    let token = app.token(&with(claims, &json!({ "nonce": held })));
    app.post(provider, &json!({ "id_token": token, "nonce": sent })).await
}

async fn assert_mismatch(app: &App, provider: &str, sent: &Value, held: &Value) {
    let rows = app.database.rows().await;
    let answer = sign_in(app, provider, sent, held).await;
    assert_eq!(answer.error(), "nonce_mismatch", "{sent} {held} {}", answer.text);
    assert_problem(&answer, 401, "nonce_mismatch");
    assert_eq!(app.database.rows().await, rows, "{sent} {held}");
}

async fn assert_match(app: &App, provider: &str, sent: &Value, held: &Value) {
    let answer = sign_in(app, provider, sent, held).await;
    assert!(answer.status.is_success(), "{sent} {held} {}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_nonce_is_the_requests_in_the_form_that_is_set() {
    let app = App::start_with(|figment| figment.merge(("providers.second.nonce_form", "sha256"))).await;
    let longest = "n".repeat(512);
    for (sent, held) in [(RAW, RAW), (SHA256, SHA256), ("ñ ✓", "ñ ✓"), (&longest, &longest)] {
        assert_match(&app, "idp", &json!(sent), &json!(held)).await;
    }
    assert_match(&app, "second", &json!(RAW), &json!(SHA256)).await;
    for (provider, sent, held) in [("idp", RAW, SHA256), ("second", RAW, RAW), ("second", SHA256, SHA256)] {
        assert_mismatch(&app, provider, &json!(sent), &json!(held)).await;
    }
    assert_match(&app, "idp", &Value::Null, &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_nonce_is_refused() {
    let app = App::start().await;
    for (sent, held) in [
        (json!(RAW), json!("another")),
        (json!(RAW), json!(RAW.to_uppercase())),
        (json!(RAW), json!(SHA256.to_uppercase())),
        (json!(SHA256), json!(RAW)),
        (json!(RAW), json!(&SHA256[..63])),
        (json!(RAW), json!(format!("{RAW} "))),
        (json!(RAW), json!("")),
        (json!("1"), json!(1)),
        (json!(RAW), json!([RAW])),
        (json!(RAW), json!(false)),
    ] {
        assert_mismatch(&app, "idp", &sent, &held).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_on_one_side_only_is_refused() {
    let app = App::start().await;
    assert_mismatch(&app, "idp", &json!(RAW), &Value::Null).await;
    for held in [json!(RAW), json!(""), json!(0)] {
        assert_mismatch(&app, "idp", &Value::Null, &held).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_let_a_nonce_pass_that_only_the_token_carries() {
    let app = App::start_with(|figment| figment.merge(("providers.second.nonce", "if_sent"))).await;
    assert_match(&app, "second", &Value::Null, &json!(RAW)).await;
    assert_match(&app, "second", &json!(RAW), &json!(RAW)).await;
    assert_mismatch(&app, "second", &json!(RAW), &Value::Null).await;
    assert_mismatch(&app, "second", &json!(RAW), &json!("another")).await;
    // The others stay as strict as they were.
    assert_mismatch(&app, "third", &Value::Null, &json!(RAW)).await;
}
