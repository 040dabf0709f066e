//! What the body is said to be, and how much of it there is.

use reqwest::Method;
use serde_json::json;

use super::{PATH, assert_malformed, assert_refused};
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::raw::Raw;
use crate::support::token::{claims, opaque};

const MIB: usize = 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_declared_as_json_is_not_read() {
    let app = App::start().await;
    let sound = json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
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
    ] {
        assert_refused(&app, content_type, &sound, 415, "unsupported_media_type").await;
    }
    for content_type in ["application/json; charset=utf-8", "APPLICATION/JSON"] {
        let answer = app.send(Method::POST, PATH, Some(content_type), sound.clone()).await;
        assert!(answer.status.is_success(), "{content_type} {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_not_inflated() {
    let app = App::start().await;
    let sound = json!({ "id_token": opaque() }).to_string();
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
        let mut raw = Raw::connect(&app).await;
        raw.send(format!(
            "POST {PATH} HTTP/1.1\r\nHost: vestibule\r\nContent-Type: application/json\r\n\
             Content-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n{sound}",
            sound.len(),
        ))
        .await;
        assert_problem(&raw.answer().await.expect("an answer"), 415, "unsupported_media_type");
    }
    assert_eq!(app.provider.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_too_large() {
    let app = App::start().await;
    let object = r#"{"id_token":"x"}"#;
    let padded = |size: usize| " ".repeat(size - object.len()) + object;
    assert_refused(&app, Some("application/json"), padded(MIB + 1), 413, "payload_too_large").await;
    // At the limit it is read, and found to hold no token.
    assert_malformed(&app, padded(MIB)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_body_is_refused_at_the_limit_and_the_connection_closed() {
    let app = App::start().await;
    let mut raw = Raw::connect(&app).await;
    raw.send(format!(
        "POST {PATH} HTTP/1.1\r\nHost: vestibule\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n40000000\r\n",
    ))
    .await;
    // Of the gigabyte announced no more than this is sent, so the answer does not wait for it.
    raw.send(" ".repeat(MIB + 1)).await;
    assert_problem(&raw.answer().await.expect("an answer"), 413, "payload_too_large");
    raw.closed().await;
    assert_eq!(app.sign_in(&claims("subject-1", "ada@example.com")).await.outcome(), "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_the_same_error_as_any_client() {
    let app = App::start().await;
    for accept in
        ["text/html", "text/html,application/xhtml+xml;q=0.9", "image/png", "application/xml", "", "nonsense"]
    {
        for (path, status, error) in [(PATH, 400, "invalid_request"), ("/api/v1/nothing", 404, "not_found")] {
            let mut raw = Raw::connect(&app).await;
            raw.send(format!(
                "POST {path} HTTP/1.1\r\nHost: vestibule\r\nAccept: {accept}\r\n\
                 Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
            ))
            .await;
            assert_problem(&raw.answer().await.expect("an answer"), status, error);
        }
    }
}
