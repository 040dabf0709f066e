//! `GET /api/v1/auth/providers`: the data for an app's sign-in buttons.

use figment::Figment;
use figment::providers::{Format, Toml};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::token::{CLIENT_ID, claims, with};

const PATH: &str = "/api/v1/auth/providers";
const ANDROID: &str = "111-android.apps.googleusercontent.com";
const IOS: &str = "111-ios.apps.googleusercontent.com";

/// Settings as an operator writes them.
fn settings(figment: Figment) -> Figment {
    figment.merge(
        Toml::string(&format!(
            r#"
            [default.idp]
            name = "main"
            client_secret = "a secret"
            additional_client_ids = ["{ANDROID}", "{IOS}"]
            [default.idp.clients."{IOS}"]
            nonce = "if_sent"
            [default.providers.apple]
            preset = "apple"
            client_id = "com.example.app"
            nonce = "always"
            [default.providers.company]
            preset = "oidc"
            issuer = "https://login.example.com/realms/a"
            client_id = "vestibule"
            [default.providers.third]
            enabled = false
            "#
        ))
        .nested(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_list_has_what_each_enabled_providers_sdk_needs() {
    let app = App::start_with(settings).await;
    let answer = app.send(Method::GET, PATH, None, "").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("Content-Type")),
        (200, Some("application/json"))
    );
    assert_eq!(answer.header("Cache-Control"), Some("public, max-age=300"));
    let plain = |name: &str, kind: &str, issuer: Value, client_id: &str| {
        json!({ "name": name, "kind": kind, "issuer": issuer, "client_id": client_id,
                "nonce": "both_or_neither", "nonce_form": "raw", "clients": {} })
    };
    let mut main = plain("main", "oidc", Value::Null, CLIENT_ID);
    main["clients"] = json!({ IOS: { "nonce": "if_sent", "nonce_form": "raw" } });
    let mut apple = plain("apple", "apple", Value::Null, "com.example.app");
    (apple["nonce"], apple["nonce_form"]) = ("always".into(), "sha256".into());
    let company = plain(
        "company",
        "oidc",
        "https://login.example.com/realms/a".into(),
        "vestibule",
    );
    let others = ["fourth", "second"].map(|name| plain(name, "oidc", Value::Null, CLIENT_ID));
    let [fourth, second] = others;
    // The default provider comes first, then the other enabled providers by name, without secrets
    // and endpoints.
    assert_eq!(
        answer.json(),
        json!({ "providers": [main, apple, company, fourth, second] })
    );
    assert_problem(
        &app.send(Method::POST, PATH, None, "").await,
        405,
        "method_not_allowed",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_list_is_rate_limited_like_other_anonymous_requests() {
    let app = App::start_with(|figment| {
        figment
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.refresh_per_minute", 1))
    })
    .await;
    assert_eq!(app.send(Method::GET, PATH, None, "").await.status, 200);
    let limited = app.send(Method::GET, PATH, None, "").await;
    assert_eq!(
        (limited.status.as_u16(), limited.error().as_str()),
        (429, "rate_limited")
    );
}

/// `GoogleSignIn` for iOS makes up a nonce that the free React Native package cannot return.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_configured_platform_may_omit_a_nonce() {
    let app = App::start_with(settings).await;
    for (party, sent, status) in [
        (IOS, None, 201),
        (IOS, Some("n"), 200),
        (IOS, Some("another"), 401),
        (ANDROID, None, 401),
        (ANDROID, Some("n"), 200),
        (CLIENT_ID, None, 401),
    ] {
        // All tokens are for the backend; `azp` names the platform.
        let token = app.token(&with(
            claims("ada", "ada@example.com"),
            &json!({ "azp": party, "nonce": "n" }),
        ));
        let answer = app
            .post("main", &json!({ "id_token": token, "nonce": sent }))
            .await;
        assert_eq!(answer.status, status, "{party} {sent:?}: {}", answer.text);
        if status == 401 {
            assert_eq!(answer.error(), "nonce_mismatch");
        }
    }
}
