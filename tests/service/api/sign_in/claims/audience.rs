//! `aud` and `azp` (OIDC Core §3.1.3.7, 3 to 5): only configured client ids.

use serde_json::{Value, json};
use vestibule::config::Config;

use super::{assert_accepted, assert_refused, changed, without};
use crate::support::app::{App, figment};
use crate::support::token::{CLIENT_ID, claims, with};

const ANDROID: &str = "android.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_another_application_is_refused() {
    let app = App::start().await;
    for audience in [
        json!("client-2.example"),
        json!(format!("{CLIENT_ID}.evil.example")),
        json!(format!("{CLIENT_ID} ")),
        json!(format!("{CLIENT_ID},client-2.example")),
        json!(CLIENT_ID.to_uppercase()),
        json!([CLIENT_ID, "client-2.example"]),
        json!(["client-2.example", CLIENT_ID]),
        json!([[CLIENT_ID]]),
    ] {
        assert_refused(&app, "idp", &changed("aud", audience), 401, "audience_mismatch").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_an_audience_is_refused() {
    let app = App::start().await;
    for audience in [Value::Null, json!(""), json!([]), json!([""]), json!([null]), json!({}), json!(true)] {
        assert_refused(&app, "idp", &changed("aud", audience), 401, "audience_mismatch").await;
    }
    assert_refused(&app, "idp", &without("aud"), 401, "audience_mismatch").await;
}

#[test]
fn an_empty_client_id_that_would_match_an_empty_audience_cannot_be_configured() {
    let sound = || figment("postgres://localhost/none", "https://issuer.example/tokeninfo");
    Config::read(sound()).expect("the tests' settings are sound");
    for (key, value) in [
        ("idp.client_id", json!("")),
        ("idp.client_id", json!(" ")),
        ("idp.additional_client_ids", json!("")),
        ("idp.additional_client_ids", json!(["android.example", ""])),
        ("idp.additional_client_ids", json!("android.example,,ios.example")),
    ] {
        assert!(Config::read(sound().merge((key, value.clone()))).is_err(), "{key} {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audience_may_be_a_list_of_configured_client_ids() {
    let app = App::start_with(|figment| figment.merge(("idp.additional_client_ids", ANDROID))).await;
    for audience in [json!([CLIENT_ID]), json!([CLIENT_ID, ANDROID]), json!(ANDROID)] {
        assert_accepted(&app, "idp", &changed("aud", audience)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audience_that_is_a_number_is_not_the_client_id_of_the_same_digits() {
    let app = App::start_with(|figment| figment.merge(("idp.client_id", "1234567890"))).await;
    let digits = |audience: Value| with(claims("subject-1", ""), &json!({ "aud": audience, "azp": null }));
    assert_refused(&app, "idp", &digits(json!(1_234_567_890)), 401, "audience_mismatch").await;
    assert_refused(&app, "idp", &digits(json!(1_234_567_890.0)), 401, "audience_mismatch").await;
    assert_accepted(&app, "idp", &digits(json!("1234567890"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authorized_party_must_be_a_configured_client_too() {
    let app = App::start_with(|figment| figment.merge(("idp.additional_client_ids", ANDROID))).await;
    for party in [json!("client-2.example"), json!(""), json!(1), json!([CLIENT_ID]), json!(true)] {
        assert_refused(&app, "idp", &changed("azp", party), 401, "audience_mismatch").await;
    }
    assert_accepted(&app, "idp", &changed("azp", ANDROID)).await;
    assert_accepted(&app, "idp", &without("azp")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_belongs_to_the_application_that_asked_for_the_token() {
    let app = App::start_with(|figment| figment.merge(("idp.additional_client_ids", ANDROID))).await;
    assert_accepted(&app, "idp", &changed("azp", ANDROID)).await;
    assert_accepted(&app, "idp", &without("azp")).await;
    let clients: Vec<String> = sqlx::query_scalar("SELECT client_id FROM sessions ORDER BY created_at")
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(clients, [ANDROID, CLIENT_ID]);
}
