//! Custom claims that the backend sets for a user.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::race::rounds;
use crate::support::token::claims;

async fn set(app: &App, key: &str, user: &str, claims: &Value) -> Answer {
    let path = format!("/api/v1/admin/users/{user}/claims");
    app.as_user(
        key,
        Method::PUT,
        &path,
        Some(&json!({ "claims": claims, "reason": "promoted" })),
    )
    .await
}

async fn stored(app: &App) -> Option<Value> {
    app.database.value("SELECT claims FROM users").await
}

/// Returns the events of changed claims: actor and detail.
async fn events(app: &App) -> Vec<(String, Value)> {
    app.database
        .all("SELECT actor, detail FROM events WHERE kind = 'claims_changed' ORDER BY id")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_replaced_as_a_whole_and_recorded_when_they_differ() {
    let app = App::start().await;
    let key = app.api_key("backend", KeyRole::Admin).await;
    let ada = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .user_id();
    let first = json!({ "roles": ["editor"], "tenant": 7 });
    for expected in [1, 1] {
        let answer = set(&app, &key, &ada, &first).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()),
            (200, json!({ "claims": first }))
        );
        assert_eq!(stored(&app).await, Some(first.clone()));
        assert_eq!(events(&app).await.len(), expected);
    }
    let second = json!({ "plan": "pro" });
    assert_eq!(set(&app, &key, &ada, &second).await.status, 200);
    assert_eq!(stored(&app).await, Some(second.clone()));
    for _ in 0..2 {
        assert_eq!(
            set(&app, &key, &ada, &json!({})).await.json(),
            json!({ "claims": {} })
        );
        assert_eq!(stored(&app).await, None);
    }
    let expected = [first, second, json!({})].map(|claims| {
        (
            "key:backend".to_owned(),
            json!({ "claims": claims, "reason": "promoted" }),
        )
    });
    assert_eq!(events(&app).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_a_verifier_could_mistake_are_refused() {
    let app = App::start().await;
    let key = app.api_key("backend", KeyRole::Admin).await;
    let ada = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .user_id();
    for (claims, told) in [
        (json!({ "sub": "somebody-else" }), "`sub` is reserved"),
        (
            json!({ "a": [{ "__proto__": { "admin": true } }] }),
            "`__proto__` is reserved",
        ),
        (json!({ "constructor": 1 }), "`constructor` is reserved"),
        (json!({ "a": "x".repeat(1_000) }), "at most 1000"),
        (json!("roles"), "`claims` must be an object"),
        (Value::Null, "`claims` is missing"),
    ] {
        let answer = set(&app, &key, &ada, &claims).await;
        assert_problem(&answer, 400, "invalid_request");
        assert!(
            answer.json()["detail"].as_str().unwrap().contains(told),
            "{}",
            answer.text
        );
    }
    let nobody = uuid::Uuid::now_v7().to_string();
    assert_problem(
        &set(&app, &key, &nobody, &json!({ "a": 1 })).await,
        404,
        "user_not_found",
    );
    assert_eq!((stored(&app).await, events(&app).await.len()), (None, 0));
}

/// The state according to the newest events, and the stored state.
const TOLD: &str = "SELECT (SELECT detail->'claims' FROM events WHERE kind = 'claims_changed' ORDER BY id DESC LIMIT 1),
                           (SELECT kind = 'user_disabled' FROM events WHERE kind IN ('user_disabled', 'user_enabled')
                            ORDER BY id DESC LIMIT 1),
                           claims, disabled_at IS NOT NULL FROM users";

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_of_concurrent_change_events_matches_the_user() {
    let app = Arc::new(App::start().await);
    let key = app.api_key("backend", KeyRole::Admin).await;
    let ada = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .user_id();
    for round in 0..rounds() {
        let mut changes = JoinSet::new();
        for number in 0..4 {
            let app = app.clone();
            let key = key.clone();
            let ada = ada.clone();
            changes.spawn(async move {
                let answer = set(
                    &app,
                    &key,
                    &ada,
                    &json!({ "round": round, "number": number }),
                )
                .await;
                assert_eq!(answer.status, 200, "{}", answer.text);
                let change = ["disable", "enable"][number % 2];
                let path = format!("/api/v1/admin/users/{ada}/{change}");
                let answer = app
                    .as_user(&key, Method::POST, &path, Some(&json!({ "reason": "x" })))
                    .await;
                assert!(answer.status.is_success(), "{}", answer.text);
            });
        }
        changes.join_all().await;
        let (told, told_disabled, is, is_disabled): (Value, bool, Value, bool) =
            app.database.row(TOLD).await;
        assert_eq!((told, told_disabled), (is, is_disabled), "round {round}");
    }
}
