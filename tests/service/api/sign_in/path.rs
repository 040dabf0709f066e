//! The provider in the path: it alone decides which provider is called and which tokens are
//! accepted.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::raw::Raw;
use crate::support::token::{at, claims};

/// Posts a sound sign-in to a path exactly as written, which an HTTP library would normalize.
async fn post_to(app: &App, path: &str) -> Answer {
    let body =
        json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
    Raw::ask(
        app,
        format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n"),
        &body,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_provider_name_is_404_without_a_provider_call() {
    let app = App::start().await;
    for name in [
        "unknown",
        "IDP",
        "Idp",
        "idp%00",
        "%00",
        "idp%20",
        "..%2Fidp",
        "idp%0A",
        "..%2F..%2Fidp",
        "idp%2F",
        "idp%2Fidp",
        "idp;a=b",
        "idp.",
        "*",
        "'%20OR%20'1'='1",
    ] {
        let answer = post_to(&app, &format!("/api/v1/auth/oauth/{name}")).await;
        assert_eq!(
            answer.error(),
            "provider_not_found",
            "{name}: {}",
            answer.text
        );
        assert_problem(&answer, 404, "provider_not_found");
    }
    assert_eq!(app.provider.calls(), 0);
    assert_eq!(app.database.rows().await, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_only_resembles_the_routes_is_not_found() {
    let app = App::start().await;
    for path in [
        "//api/v1//auth/oauth/idp",
        "//api/v1/auth/oauth/idp",
        "/api/v1/auth//oauth/idp",
        "/api/v1/auth/oauth//idp",
        "/api/v1/auth/oauth/idp//",
        "/api/v1/auth/oauth/",
        "/api/v1/auth/oauth",
        "/api/v1/auth/oauth/idp/idp",
        "/api/v1/auth/oauth/../oauth/idp",
        "/api/v1/auth/oauth/%2e%2e/idp",
        "/api/v1/auth/oauth/%2E%2E/idp",
        "/api/v1/auth/oauth/%2e%2e%2Fidp",
        "/api/v1/auth/oauth/%69dp",
        "/api/v1/auth/oauth/%69dp%ff",
        "/api/v1/auth/oauth/idp%0a",
        "/%61pi/v1/auth/oauth/idp",
        "/api/v1/auth/./oauth/idp",
        "/API/v1/auth/oauth/idp",
        "/api/v2/auth/oauth/idp",
    ] {
        let answer = post_to(&app, path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        assert_problem(&answer, 404, &answer.error());
    }
    assert_eq!(app.provider.calls(), 0);
    assert_eq!(app.database.rows().await, [0, 0, 0]);
    assert_eq!(
        post_to(&app, "/api/v1/auth/oauth/idp").await.outcome(),
        "created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_switched_off_refuses_everyone_without_being_asked() {
    let app = App::start_with(|figment| figment.merge(("providers.second.enabled", false))).await;
    let of_second = at("second", "subject-1", "ada@example.com");
    assert_problem(
        &app.sign_in_at("second", &of_second).await,
        403,
        "provider_disabled",
    );
    assert_eq!(app.provider.calls(), 0);
    assert_eq!(app.database.rows().await, [0, 0, 0]);
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_changes_nothing() {
    let app = App::start().await;
    let body =
        json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
    let path = "/api/v1/auth/oauth/idp?provider=second&id_token=x.y.z";
    let answer = app
        .send(Method::POST, path, Some("application/json"), body)
        .await;
    assert_eq!(
        answer.json()["identity"]["provider"],
        Value::from("idp"),
        "{}",
        answer.text
    );
}
