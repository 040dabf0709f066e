//! A response sent before the body was read still arrives, and the next request is served.

use crate::support::app::App;
use crate::support::raw::Raw;

/// The longest body that the service reads from any client.
const LONGEST: usize = 256 * 1024;

/// The heads of requests, and the status of the response to each.
const REQUESTS: [(&str, u16); 17] = [
    ("GET /livez", 200),
    ("POST /livez", 405),
    ("POST /nothing", 404),
    ("POST //livez", 404),
    ("BREW /livez", 405),
    ("BREW /nothing", 400),
    ("TRACE /api/v1/me", 405),
    ("OPTIONS /api/v1/me", 405),
    ("HEAD /livez", 200),
    ("HEAD /nothing", 404),
    ("GET /api/v1/me", 401),
    ("DELETE /api/v1/me", 401),
    ("POST /api/v1/auth/oauth/none", 404),
    ("POST /api/v1/auth/refresh", 415),
    ("POST /api/v1/auth/token", 400),
    ("POST /admin/sign-in", 503),
    ("POST /admin/sign-out", 303),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_before_its_body_was_read_is_answered() {
    let app = App::start().await;
    for length in [1, 600, 65_000, LONGEST] {
        let body = "x".repeat(length);
        for (start, status) in REQUESTS {
            for chunked in [false, true] {
                let framed = if chunked {
                    format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
                } else {
                    format!("Content-Length: {length}\r\n\r\n{body}")
                };
                let mut raw = Raw::connect(&app).await;
                // The whole body is sent before the response is read.
                raw.send(format!("{start} HTTP/1.1\r\nHost: vestibule\r\n{framed}"))
                    .await;
                let answer = raw.answer_to(start).await;
                let answer =
                    answer.unwrap_or_else(|| panic!("{start} with {length} bytes: no answer"));
                assert_eq!(
                    answer.status, status,
                    "{start} with {length} bytes: {}",
                    answer.text
                );
                raw.send("GET /livez HTTP/1.1\r\nHost: vestibule\r\n\r\n")
                    .await;
                let next = raw
                    .answer()
                    .await
                    .unwrap_or_else(|| panic!("{start}: the connection is closed"));
                assert_eq!(next.text, "ok\n", "{start}");
            }
        }
    }
}

/// hyper refuses these heads before Rocket sees them.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_head_gets_a_response_before_the_connection_closes() {
    let app = App::start().await;
    let many = "X-A: b\r\n".repeat(150);
    for (head, status) in [
        ("POST /livez HTTP/1.1\r\nX-A: \x01\r\n", 400),
        ("POST /<> HTTP/1.1\r\n", 400),
        (&*format!("POST /livez HTTP/1.1\r\n{many}"), 431),
    ] {
        let mut raw = Raw::connect(&app).await;
        raw.send(format!(
            "{head}Host: vestibule\r\nContent-Length: 65000\r\n\r\n{}",
            "x".repeat(65_000)
        ))
        .await;
        let answer = raw
            .answer()
            .await
            .unwrap_or_else(|| panic!("{head:.60}: no answer"));
        assert_eq!(answer.status, status, "{head:.60}");
        raw.closed().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_all_limits_is_answered_and_the_connection_closed() {
    let app = App::start().await;
    let mut raw = Raw::connect(&app).await;
    let length = 4 * LONGEST;
    let head = format!(
        "POST /api/v1/auth/refresh HTTP/1.1\r\nHost: vestibule\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    raw.send(head + &" ".repeat(length)).await;
    assert_eq!(
        raw.answer().await.expect("an answer").error(),
        "payload_too_large"
    );
}
