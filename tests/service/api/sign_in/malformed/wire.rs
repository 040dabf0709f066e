//! Bytes that are not HTTP, or ambiguous HTTP: the service refuses them or closes the connection.

use std::time::Instant;

use serde_json::json;

use super::head;
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::raw::Raw;
use crate::support::token::claims;

/// Asserts that the service refuses a request head, closes the connection, and serves the next
/// request.
async fn assert_hung_up(app: &App, headers: &[u8], body: &str) {
    let shown = String::from_utf8_lossy(headers).into_owned();
    let mut raw = Raw::connect(app).await;
    raw.send(
        [
            head().as_bytes(),
            b"Host: vestibule\r\n",
            headers,
            b"\r\n",
            body.as_bytes(),
        ]
        .concat(),
    )
    .await;
    if let Some(answer) = raw.answer().await {
        assert_eq!(answer.status, 400, "{shown:?} {}", answer.text);
        assert_eq!(
            raw.answer().await.map(|second| second.text),
            None,
            "{shown:?}"
        );
    }
    assert_eq!(app.provider.calls(), 0, "{shown:?}");
    assert_eq!(app.database.rows().await, [0, 0, 0], "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_two_readers_could_read_differently_is_refused() {
    let app = App::start().await;
    let body =
        json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
    let length = body.len();
    for headers in [
        format!(
            "Content-Length: {length}\r\nContent-Length: {}\r\n",
            length - 1
        ),
        format!("Content-Length: +{length}\r\n"),
        format!("Content-Length: {length}a\r\n"),
        format!("Content-Length: -{length}\r\n"),
        "Content-Length: 99999999999999999999999\r\n".to_owned(),
        format!("Content-Length: {length}\r\nX-Folded: a\r\n b\r\n"),
        format!("Content-Length: {length}\r\nX-Nul: a\0b\r\n"),
        format!("Content-Length: {length}\r\nX Blank: a\r\n"),
        format!("Content-Length : {length}\r\n"),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
    ] {
        assert_hung_up(&app, headers.as_bytes(), &body).await;
    }
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}

/// RFC 9112 §6.1 lets a server read such a request by its chunks if it then closes the connection:
/// the bytes that a proxy took for the rest of the body must not become a second request.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_length_and_chunks_uses_chunks_and_closes() {
    let app = App::start().await;
    let body =
        json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
    let smuggled = "GET /problems HTTP/1.1\r\nHost: vestibule\r\n\r\n";
    let sent = format!("{:x}\r\n{body}\r\n0\r\n\r\n{smuggled}", body.len());
    for headers in [
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n",
            sent.len()
        ),
        format!(
            "Transfer-Encoding: chunked\r\nContent-Length: {}\r\n",
            sent.len()
        ),
    ] {
        let mut raw = Raw::connect(&app).await;
        raw.send(format!("{}Host: vestibule\r\n{headers}\r\n{sent}", head()))
            .await;
        let answer = raw.answer().await.expect("an answer");
        assert!(answer.status.is_success(), "{headers:?} {}", answer.text);
        assert_eq!(
            raw.answer().await.map(|second| second.text),
            None,
            "{headers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_is_hung_up_on() {
    let app = App::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut raw = Raw::connect(&app).await;
        raw.send(bytes).await;
        let status = raw.answer().await.map(|answer| answer.status.as_u16());
        assert!([None, Some(400)].contains(&status), "{bytes:?} {status:?}");
        raw.closed().await;
    }
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stops_arriving_is_given_up_within_seconds() {
    let app = App::start().await;
    let mut raw = Raw::connect(&app).await;
    let started = Instant::now();
    raw.send(format!(
        "{}Host: vestibule\r\nContent-Length: 100\r\n\r\n{{",
        head()
    ))
    .await;
    let answer = raw.answer().await.expect("an answer");
    assert_problem(&answer, 400, "invalid_request");
    raw.closed().await;
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    assert_eq!(app.provider.calls(), 0);
}
