//! What operators and their machines ask.

use reqwest::Method;
use serde_json::json;

use crate::support::app::{Answer, App};
use crate::support::token::claims;

async fn ask(app: &App, path: &str) -> Answer {
    app.send(Method::GET, path, None, "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_alive_whatever_its_database_does_and_ready_only_with_it() {
    let app = App::start().await;
    assert_eq!(ask(&app, "/livez").await.text, "ok\n");
    let ready = ask(&app, "/readyz").await;
    assert_eq!(ready.status.as_u16(), 200);
    let well = json!({ "service": "ok", "database": "ok", "migrations": "ok", "keys": "ok" });
    assert_eq!(ready.json(), well);
    let pool = &app.database.pool;
    sqlx::query("UPDATE _sqlx_migrations SET success = false").execute(pool).await.unwrap();
    let ready = ask(&app, "/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["migrations"]), (503, &json!("missing")));
    sqlx::query("DROP TABLE _sqlx_migrations").execute(pool).await.unwrap();
    let ready = ask(&app, "/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["database"]), (503, &json!("failed")));
    assert_eq!(ask(&app, "/livez").await.status.as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_count_what_happened_and_name_nobody() {
    let app = App::start().await;
    let signed_in = app.sign_in(&claims("subject-of-ada", "ada@example.com")).await;
    app.sign_in(&claims("subject-of-ada", "ada@example.com")).await;
    app.post("idp", &json!({ "id_token": "x" })).await;
    app.post("no-such-provider", &json!({ "id_token": "x" })).await;
    app.refresh(&signed_in.refresh_token()).await;
    app.refresh("unknown").await;
    let metrics = ask(&app, "/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in [
        "vestibule_build_info{version=\"0.1.0\"} 1",
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"created\"} 1",
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"signed_in\"} 1",
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"invalid_request\"} 1",
        "vestibule_sign_ins_total{provider=\"\",outcome=\"provider_not_found\"} 1",
        "vestibule_refreshes_total{outcome=\"rotated\"} 1",
        "vestibule_refreshes_total{outcome=\"unknown\"} 1",
        "vestibule_requests_total{method=\"POST\",route=\"/api/v1/auth/refresh\",status=\"200\"} 1",
        "vestibule_request_duration_seconds_count{route=\"/api/v1/auth/refresh\"} 2",
        "vestibule_provider_calls_total{provider=\"idp\",outcome=\"answered\"} 2",
        "vestibule_provider_call_duration_seconds_count{provider=\"idp\"} 2",
        "vestibule_provider_breaker_open{provider=\"second\"} 0.0",
        "vestibule_database_connections_max 16",
        "vestibule_signing_key_reload_failures 0",
        "# EOF",
    ] {
        assert!(metrics.text.lines().any(|known| known == line), "{line}: {}", metrics.text);
    }
    for secret in ["ada", "no-such", "127.0.0.1", &signed_in.refresh_token(), &signed_in.user_id()] {
        assert!(!metrics.text.contains(secret), "{secret}: {}", metrics.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_outside_the_networks_for_metrics_finds_nothing() {
    let app = App::start_with(|figment| figment.merge(("trusted_proxies", "127.0.0.1"))).await;
    for (address, status) in [("203.0.113.9", 404), ("10.1.2.3", 200), ("::1", 200), ("2001:db8::1", 404)] {
        let client = reqwest::Client::new().get(format!("{}/metrics", app.url));
        let answer = client.header("X-Forwarded-For", address).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{address}");
    }
    let closed = App::start_with(|figment| figment.merge(("metrics.networks", [""; 0]))).await;
    assert_eq!(ask(&closed, "/metrics").await.error(), "not_found");
}
