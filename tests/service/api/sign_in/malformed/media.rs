//! The media type and the size of the body.

use serde_json::json;

use super::{PATH, assert_malformed, assert_refused, head};
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::process::{eventually, until};
use crate::support::raw::Raw;
use crate::support::token::{claims, opaque};

const LIMIT: usize = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_declared_as_json_is_not_read() {
    let app = App::start().await;
    let sound =
        json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
    for content_type in [
        None,
        Some(""),
        Some("text/plain"),
        Some("text/json"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=a"),
        Some("application/octet-stream"),
        Some("application/jsonp"),
        Some("application/problem+json"),
        Some("application"),
        Some("*/*"),
        Some("text/plain; application/json"),
        Some("text/plain;application/json;"),
        Some("application/json, text/plain"),
        Some("application/json/x"),
        Some("application /json"),
    ] {
        assert_refused(&app, content_type, &sound, 415, "unsupported_media_type").await;
    }
    // RFC 9110 §5.6.6: parameters may be empty. The service ignores all of them.
    for content_type in [
        &b"application/json; charset=utf-8"[..],
        b"APPLICATION/JSON",
        b"application/json;",
        b"application/json ; ; charset=utf-8;",
        b"application/json; charset",
        b"application/json; charset=utf8",
        b"application/json; note=\"a;b\"",
        b"application/json; name=Jos\xe9",
    ] {
        let head = format!("POST {PATH} HTTP/1.1\r\nContent-Type: ");
        let answer = Raw::ask(
            &app,
            [head.as_bytes(), content_type, b"\r\n"].concat(),
            &sound,
        )
        .await;
        assert!(
            answer.status.is_success(),
            "{} {}",
            String::from_utf8_lossy(content_type),
            answer.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_not_inflated() {
    let app = App::start().await;
    let sound = json!({ "id_token": opaque() }).to_string();
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
        let lines = format!("{}Content-Encoding: {encoding}\r\n", head());
        assert_problem(
            &Raw::ask(&app, lines, &sound).await,
            415,
            "unsupported_media_type",
        );
    }
    assert_eq!(app.provider.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_too_large() {
    let app = App::start().await;
    let object = r#"{"id_token":"x"}"#;
    let padded = |size: usize| " ".repeat(size - object.len()) + object;
    assert_refused(
        &app,
        Some("application/json"),
        padded(LIMIT + 1),
        413,
        "payload_too_large",
    )
    .await;
    // A body at the limit is read, and contains no token.
    assert_malformed(&app, padded(LIMIT)).await;
    let mut raw = Raw::connect(&app).await;
    raw.send(format!(
        "{}Host: vestibule\r\nContent-Length: 1048576\r\n\r\n{}",
        head(),
        " ".repeat(100)
    ))
    .await;
    assert_problem(
        &raw.answer()
            .await
            .expect("an answer that waits for no more"),
        413,
        "payload_too_large",
    );
    raw.closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_bodies_exhaust_a_budget_but_small_ones_pass() {
    let app = App::start().await;
    let large = || async {
        let mut raw = Raw::connect(&app).await;
        raw.send(format!(
            "{}Host: vestibule\r\nContent-Length: 65510\r\n\r\n{}",
            head(),
            " ".repeat(65_500)
        ))
        .await;
        raw
    };
    // 128 such bodies exhaust the budget of eight megabytes.
    let mut stalled = Vec::new();
    for _ in 0..140 {
        stalled.push(large().await);
    }
    let chunks = async |size: usize| {
        let body = " ".repeat(size) + r#"{"id_token":"x"}"#;
        let mut raw = Raw::connect(&app).await;
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        raw.send(format!(
            "{}Host: vestibule\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}",
            head()
        ))
        .await;
        raw.answer().await.expect("an answer")
    };
    let refused = eventually("the budget is used up", async || {
        Some(chunks(20_000).await).filter(|answer| answer.status == 503)
    })
    .await;
    assert_problem(&refused, 503, "service_unavailable");
    assert_eq!(refused.header("Retry-After"), Some("1"));
    let mut raw = large().await;
    assert_eq!(
        raw.answer().await.expect("an answer").status,
        503,
        "by its declared length"
    );
    raw.closed().await;
    assert_eq!(chunks(1_000).await.status, 400);
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );

    drop(stalled);
    until("there is room again", async || {
        chunks(60_000).await.status == 400
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_body_is_refused_at_the_limit_and_disconnected() {
    let app = App::start().await;
    let mut raw = Raw::connect(&app).await;
    raw.send(format!(
        "{}Host: vestibule\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n",
        head()
    ))
    .await;
    // The chunk announces a gigabyte and ends here: the response must not wait for the rest.
    raw.send(" ".repeat(LIMIT + 1)).await;
    assert_problem(
        &raw.answer().await.expect("an answer"),
        413,
        "payload_too_large",
    );
    raw.closed().await;
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_the_same_error_as_any_client() {
    let app = App::start().await;
    for accept in [
        "text/html",
        "text/html,application/xhtml+xml;q=0.9",
        "image/png",
        "application/xml",
        "",
        "nonsense",
    ] {
        for (path, status, error) in [
            (PATH, 400, "invalid_request"),
            ("/api/v1/nothing", 404, "not_found"),
        ] {
            let lines = format!("{}Accept: {accept}\r\n", head().replace(PATH, path));
            assert_problem(&Raw::ask(&app, lines, "{}").await, status, error);
        }
    }
}
