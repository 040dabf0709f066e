//! Endpoints for operators: liveness, readiness and metrics.

use reqwest::Method;
use serde_json::json;

use crate::support::app::{Answer, App};
use crate::support::process::{eventually, until};
use crate::support::token::{claims, now, opaque};

async fn ask(app: &App, path: &str) -> Answer {
    app.send(Method::GET, path, None, "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn liveness_ignores_the_database_and_readiness_requires_it() {
    let app = App::start().await;
    assert_eq!(ask(&app, "/livez").await.text, "ok\n");
    // Another test's full disk affects this process for some seconds.
    let ready = eventually("it is ready", async || {
        let ready = ask(&app, "/readyz").await;
        ready.status.is_success().then_some(ready)
    })
    .await;
    let well = json!({ "service": "ok", "database": "ok", "migrations": "ok", "keys": "ok" });
    assert_eq!(ready.json(), well);
    app.database
        .run("UPDATE _sqlx_migrations SET success = false")
        .await;
    let ready = ask(&app, "/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["migrations"]),
        (503, &json!("missing"))
    );
    app.database.run("DROP TABLE _sqlx_migrations").await;
    let ready = ask(&app, "/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["database"]),
        (503, &json!("failed"))
    );
    assert_eq!(ask(&app, "/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_count_what_happened_and_name_nobody() {
    let app = App::start().await;
    let signed_in = app
        .sign_in(&claims("subject-of-ada", "ada@example.com"))
        .await;
    app.sign_in(&claims("subject-of-ada", "ada@example.com"))
        .await;
    app.post("idp", &json!({ "id_token": "x" })).await;
    app.post("no-such-provider", &json!({ "id_token": "x" }))
        .await;
    app.refresh(&signed_in.refresh_token()).await;
    app.refresh("unknown").await;
    let metrics = ask(&app, "/metrics").await;
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    for line in [
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"created\"} 1",
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"signed_in\"} 1",
        // Counters exist before their first event, so that the first event is an increase.
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"audience_mismatch\"} 0",
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"linked\"} 0",
        "vestibule_sign_ins_total{provider=\"second\",outcome=\"signed_in\"} 0",
        "vestibule_sign_ins_total{provider=\"idp\",outcome=\"invalid_request\"} 1",
        "vestibule_sign_ins_total{provider=\"\",outcome=\"provider_not_found\"} 1",
        "vestibule_refreshes_total{outcome=\"rotated\"} 1",
        "vestibule_refreshes_total{outcome=\"unknown\"} 1",
        "vestibule_refreshes_total{outcome=\"replayed\"} 0",
        "vestibule_problems_total{error=\"invalid_refresh_token\"} 1",
        "vestibule_problems_total{error=\"internal_error\"} 0",
        "vestibule_requests_total{method=\"POST\",route=\"/api/v1/auth/refresh\",status=\"200\"} 1",
        "vestibule_request_duration_seconds_count{route=\"/api/v1/auth/refresh\"} 2",
        "vestibule_provider_calls_total{provider=\"idp\",outcome=\"answered\"} 2",
        "vestibule_provider_call_duration_seconds_count{provider=\"idp\"} 2",
        "vestibule_provider_breaker_open{provider=\"second\"} 0.0",
        "vestibule_database_connections_max{pool=\"requests\"} 16",
        "vestibule_database_connections_max{pool=\"shared\"} 8",
        "vestibule_signing_key_reload_failures 0",
        "vestibule_unrecorded_refusals_total 0",
        "# EOF",
    ] {
        assert!(
            metrics.text.lines().any(|known| known == line),
            "{line}: {}",
            metrics.text
        );
    }
    let checks = "vestibule_database_connection_checks_total ";
    assert!(
        metrics.text.lines().any(|known| known.starts_with(checks)),
        "{}",
        metrics.text
    );
    let build = "vestibule_build_info{version=\"0.1.0\",commit=\"";
    assert!(
        metrics.text.lines().any(|known| known.starts_with(build)),
        "{}",
        metrics.text
    );
    for secret in [
        "ada@",
        "subject-of",
        "no-such",
        "127.0.0.1",
        &signed_in.refresh_token(),
        &signed_in.user_id(),
    ] {
        assert!(!metrics.text.contains(secret), "{secret}: {}", metrics.text);
    }
}

/// Returns the value of a metric.
async fn metric(app: &App, name: &str) -> i64 {
    let metrics = ask(app, "/metrics").await.text;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name}: {metrics}"))
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_requests_in_flight_start_time_and_clock_offset() {
    let before = now();
    let app = App::start().await;
    let one = claims("subject-of-ada", "ada@example.com");
    let another = claims("subject-of-bob", "bob@example.com");
    let gate = app.provider.hold();
    let asked = async |requests: i64| {
        until("that many are under way", async || {
            metric(&app, "vestibule_requests_in_flight").await == requests
        })
        .await;
    };
    let watched = async {
        // Two requests that wait for the provider, and the request for the metrics.
        asked(3).await;
        gate.release();
    };
    tokio::join!(app.sign_in(&one), app.sign_in(&another), watched);
    asked(1).await;
    let started = metric(&app, "process_start_time_seconds").await;
    assert!((before..=now()).contains(&started), "{started}");
    // Both clocks are the same, but the difference may cross a whole second.
    let ahead = metric(&app, "vestibule_clock_ahead_of_database_seconds").await;
    assert!((0..=now() - before + 1).contains(&ahead), "{ahead}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_that_the_database_does_not_take_are_counted() {
    let app = App::start().await;
    app.database.run("ALTER TABLE events RENAME TO gone").await;
    app.post("idp", &json!({ "id_token": opaque() })).await;
    until("it is counted", async || {
        metric(&app, "vestibule_unrecorded_refusals_total").await == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_outside_the_networks_for_metrics_finds_nothing() {
    let app = App::start_with(|figment| figment.merge(("trusted_proxies", "127.0.0.1"))).await;
    for (address, status) in [
        ("203.0.113.9", 404),
        ("10.1.2.3", 200),
        ("::1", 200),
        ("2001:db8::1", 404),
        ("", 404),
        ("unknown", 404),
        ("127.0.0.1, unknown", 404),
    ] {
        let answer = app
            .send_with(Method::GET, "/metrics", &[("X-Forwarded-For", address)], "")
            .await;
        assert_eq!(answer.status, status, "{address}");
    }
    let closed = App::start_with(|figment| figment.merge(("metrics.networks", [""; 0]))).await;
    assert_eq!(ask(&closed, "/metrics").await.error(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scraper_gets_the_format_that_it_prefers() {
    const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let app = App::start().await;
    app.sign_in(&claims("ada", "ada@example.com")).await;
    for (accept, expected) in [
        (&[][..], OPEN),
        (&["*/*"], OPEN),
        (&["application/openmetrics-text"], OPEN),
        (
            &[
                "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            ],
            OPEN,
        ),
        (
            &[
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            ],
            OPEN,
        ),
        (
            &[
                "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            ],
            TEXT,
        ),
        (
            &["application/openmetrics-text; version=\"1.0.0\"; charset=utf-8"],
            OPEN,
        ),
        (&["application/openmetrics-text;version=0.0.1"], OPEN),
        (
            &["text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"],
            OPEN,
        ),
        (&["text/plain, *; q=.2, */*; q=.2"], TEXT),
        (
            &["application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.6"],
            TEXT,
        ),
        (&["text/plain;version=0.0.4"], TEXT),
        (
            &["text/plain;version=1.0.0;escaping=allow-utf-8;q=0.2,*/*;q=0.1"],
            TEXT,
        ),
        (&["Text/Plain ; Version=0.0.4 ; Q=1"], TEXT),
        (&["text/plain;version=0.0.4;q=1,*/*;q=0.1"], TEXT),
        (&["text/plain"], TEXT),
        (&["text/*"], TEXT),
        (&["text/plain;"], TEXT),
        (&["application/openmetrics-text;q=0, */*"], TEXT),
        (&["text/plain;q=0, */*;q=0.1"], OPEN),
        (&["text/html", "text/plain;q=0.5"], TEXT),
        (&["application/json"], OPEN),
        (&["nonsense"], OPEN),
    ] {
        let headers: Vec<_> = accept.iter().map(|value| ("Accept", *value)).collect();
        let answer = app.send_with(Method::GET, "/metrics", &headers, "").await;
        assert_eq!(answer.header("Content-Type"), Some(expected), "{accept:?}");
        assert_eq!(answer.header("Vary"), Some("Accept"), "{accept:?}");
        let is_open = expected == OPEN;
        for (line, open) in [
            ("# TYPE vestibule_sign_ins counter", Some(true)),
            ("# TYPE vestibule_sign_ins_total counter", Some(false)),
            (
                "# HELP vestibule_sign_ins_total Sign-ins by provider and outcome or error.",
                Some(false),
            ),
            (
                "vestibule_sign_ins_total{provider=\"idp\",outcome=\"created\"} 1",
                None,
            ),
            ("# TYPE vestibule_build info", Some(true)),
            ("# TYPE vestibule_build_info gauge", Some(false)),
            ("# TYPE vestibule_request_duration_seconds histogram", None),
            (
                "# UNIT vestibule_request_duration_seconds seconds",
                Some(true),
            ),
            ("# TYPE process_start_time_seconds gauge", None),
            ("# EOF", Some(true)),
        ] {
            let is_there = answer.text.lines().any(|known| known == line);
            assert_eq!(
                is_there,
                open.is_none_or(|open| open == is_open),
                "{accept:?} {line}: {}",
                answer.text
            );
        }
    }
}
