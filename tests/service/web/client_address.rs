//! The client address and the request id: the headers that the service trusts, and their senders.

use std::collections::BTreeSet;

use serde_json::json;

use super::sign_in_with;
use crate::support::app::{Answer, App};
use crate::support::raw::Raw;
use crate::support::token::claims;

/// Starts a service behind proxies at these addresses, including the tests' own.
async fn behind_proxies(header: &str) -> App {
    App::start_with(|figment| {
        figment
            .merge((
                "trusted_proxies",
                ["127.0.0.1", "10.0.0.0/8", "2001:db8:ffff::/48"],
            ))
            .merge(("forwarded_header", header))
    })
    .await
}

/// Returns the client address in the event of a successful sign-in, or a placeholder if it has
/// none.
async fn stored(app: &App, answer: &Answer) -> String {
    assert!(answer.status.is_success(), "{}", answer.text);
    sqlx::query_scalar(
        "SELECT coalesce(host(events.ip), 'nobody') FROM events JOIN sessions ON sessions.id = events.id WHERE request_id = $1",
    )
    .bind(answer.header("X-Request-Id"))
    .fetch_one(&app.database.pool)
    .await
    .unwrap()
}

async fn assert_seen(app: &App, rows: &[(&[(&str, &str)], &str)]) {
    for (headers, expected) in rows {
        let answer = sign_in_with(app, &claims("subject-1", "ada@example.com"), headers).await;
        assert_eq!(stored(app, &answer).await, *expected, "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_trusted_proxies_no_header_changes_anything() {
    let app = App::start().await;
    let forged = [
        ("X-Real-IP", "192.0.2.1"),
        ("X-Forwarded-For", "192.0.2.2"),
        ("Forwarded", "for=192.0.2.3"),
        ("True-Client-IP", "192.0.2.4"),
        ("X-Request-Id", "forged"),
    ];
    assert_seen(&app, &[(&forged, "127.0.0.1")]).await;
    let mut ids = BTreeSet::new();
    for body in [
        json!({}),
        json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }),
    ] {
        let id = super::post_with(&app, &body, &forged)
            .await
            .header("X-Request-Id")
            .unwrap()
            .to_owned();
        assert!(
            id.len() == 16 && id.bytes().all(|c| c.is_ascii_hexdigit()),
            "{id}"
        );
        assert!(ids.insert(id), "each request has its own");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_is_not_the_peer_is_not_believed() {
    let app = App::start_with(|figment| figment.merge(("trusted_proxies", ["10.0.0.0/8"]))).await;
    assert_seen(
        &app,
        &[(&[("X-Forwarded-For", "192.0.2.1, 10.0.0.1")], "127.0.0.1")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn x_forwarded_for_is_read_from_the_right() {
    const NAME: &str = "X-Forwarded-For";
    let app = behind_proxies("x-forwarded-for").await;
    assert_seen(
        &app,
        &[
            (&[], "127.0.0.1"),
            (&[(NAME, "192.0.2.1")], "192.0.2.1"),
            (&[(NAME, "198.51.100.9, 192.0.2.1")], "192.0.2.1"),
            (
                &[(NAME, "198.51.100.9,192.0.2.1 ,\t10.0.0.1,10.2.3.4")],
                "192.0.2.1",
            ),
            (
                &[(NAME, "198.51.100.9, 192.0.2.1"), (NAME, "10.0.0.1")],
                "192.0.2.1",
            ),
            (&[(NAME, "192.0.2.1, 10.0.0.1, ")], "192.0.2.1"),
            // Only proxies: the furthest one is the client.
            (&[(NAME, "10.0.0.2, 10.0.0.1")], "10.0.0.2"),
            // Anything left of the client was written by the client.
            (
                &[(NAME, "<script>, , \", 192.0.2.1, 10.0.0.1")],
                "192.0.2.1",
            ),
            // Garbage in a proxy's place: the client is unknown, and it is not the proxy.
            (&[(NAME, "192.0.2.1, unknown, 10.0.0.1")], "nobody"),
            (&[(NAME, "192.0.2.1, 10.0.0.1, 999.0.0.1")], "nobody"),
            (&[(NAME, "")], "nobody"),
            (&[(NAME, ", ,")], "nobody"),
            (&[(NAME, "unknown")], "nobody"),
            // nginx writes this for any peer at a Unix socket.
            (&[(NAME, "192.0.2.1, unix:")], "nobody"),
            (&[(NAME, "192.0.2.1"), (NAME, "unknown")], "nobody"),
            (&[(NAME, "192.0.2.1:port")], "nobody"),
            (&[(NAME, "192.0.2.1:123456")], "nobody"),
            (&[(NAME, "fe80::1%eth0")], "nobody"),
            // With ports, as some gateways write them.
            (&[(NAME, "192.0.2.1:4711")], "192.0.2.1"),
            (&[(NAME, "192.0.2.1:17085, 10.0.0.6")], "192.0.2.1"),
            (&[(NAME, "[2001:db8::1]:4711, 10.0.0.1:80")], "2001:db8::1"),
            (&[(NAME, "2001:db8::1, 2001:db8:ffff::7")], "2001:db8::1"),
            (&[(NAME, "2001:DB8:0::0001")], "2001:db8::1"),
            // IPv4-mapped IPv6 counts as IPv4, for clients and proxies.
            (&[(NAME, "::ffff:192.0.2.1, ::ffff:10.0.0.1")], "192.0.2.1"),
            // Other headers are ignored.
            (
                &[
                    (NAME, "192.0.2.1"),
                    ("Forwarded", "for=192.0.2.2"),
                    ("X-Real-IP", "192.0.2.3"),
                ],
                "192.0.2.1",
            ),
            (
                &[("Forwarded", "for=192.0.2.2"), ("X-Real-IP", "192.0.2.3")],
                "127.0.0.1",
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_is_read_as_rfc_7239_writes_it() {
    const NAME: &str = "Forwarded";
    let app = behind_proxies("forwarded").await;
    assert_seen(
        &app,
        &[
            (&[(NAME, "for=192.0.2.1")], "192.0.2.1"),
            (&[(NAME, "For=\"192.0.2.1\"")], "192.0.2.1"),
            (&[(NAME, "for=\"192.0.2.1:4711\"")], "192.0.2.1"),
            (&[(NAME, "for=\"192.0.2.1:_hidden\"")], "192.0.2.1"),
            (&[(NAME, "FOR=\"[2001:db8::1]\"")], "2001:db8::1"),
            (&[(NAME, "for=\"[2001:db8::1]:4711\"")], "2001:db8::1"),
            (&[(NAME, "for=\"[2001:db8::1\\]\"")], "2001:db8::1"),
            (
                &[(NAME, "for=192.0.2.1;proto=http;by=203.0.113.43")],
                "192.0.2.1",
            ),
            (
                &[(
                    NAME,
                    "proto=https;host=\"a,b;for=198.51.100.9\\\"\"; for=192.0.2.1 ;",
                )],
                "192.0.2.1",
            ),
            (
                &[(
                    NAME,
                    "for=198.51.100.9, for=192.0.2.1, for=10.0.0.1;by=10.0.0.2",
                )],
                "192.0.2.1",
            ),
            (
                &[
                    (NAME, "for=198.51.100.9, for=192.0.2.1"),
                    (NAME, "for=10.0.0.1"),
                ],
                "192.0.2.1",
            ),
            // An unclosed quote of the client does not swallow the proxies' entries.
            (&[(NAME, "for=\", for=192.0.2.1")], "192.0.2.1"),
            (
                &[(NAME, "for=\"\\, for=192.0.2.1, for=\"10.0.0.1:80\"")],
                "192.0.2.1",
            ),
            (
                &[(NAME, "for=\"198.51.100.9, for=\"192.0.2.1\"")],
                "192.0.2.1",
            ),
            // Unknown, hidden or malformed: the client is unknown.
            (&[(NAME, "for=192.0.2.1, for=unknown")], "nobody"),
            (
                &[(NAME, "for=192.0.2.1, for=_gateway, for=10.0.0.1")],
                "nobody",
            ),
            (&[(NAME, "for=192.0.2.1, proto=https")], "nobody"),
            (&[(NAME, "for=192.0.2.1;for=192.0.2.2")], "nobody"),
            (&[(NAME, "for = 192.0.2.1")], "nobody"),
            (&[(NAME, "192.0.2.1")], "nobody"),
            (&[(NAME, "for=\"192.0.2.1")], "nobody"),
            (&[(NAME, "for=\"[2001:db8::1]:\"")], "nobody"),
            (
                &[("X-Forwarded-For", "192.0.2.1"), ("X-Real-IP", "192.0.2.3")],
                "127.0.0.1",
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_taken_over_from_a_trusted_proxy() {
    let app = behind_proxies("x-forwarded-for").await;
    let longest = "x".repeat(64);
    for id in ["a", "8c7f-11.Z_9", &longest] {
        let answer = sign_in_with(
            &app,
            &claims("subject-1", "ada@example.com"),
            &[("X-Request-Id", id)],
        )
        .await;
        assert_eq!(answer.header("X-Request-Id"), Some(id));
        stored(&app, &answer).await;
    }
    let refused = super::post_with(&app, &json!({}), &[("X-Request-Id", "refused-1")]).await;
    assert_eq!(refused.json()["request_id"], "refused-1");
    let too_long = "x".repeat(65);
    let ids =
        ["", "a b", "a,b", "\"a\"", "id=1", "<b>", &too_long].map(|id| vec![("X-Request-Id", id)]);
    for headers in ids
        .into_iter()
        .chain([vec![("X-Request-Id", "one"), ("X-Request-Id", "two")]])
    {
        let answer = sign_in_with(&app, &claims("subject-1", "ada@example.com"), &headers).await;
        let id = answer.header("X-Request-Id").unwrap();
        assert!(
            id.len() == 16 && id.bytes().all(|c| c.is_ascii_hexdigit()),
            "{headers:?}: {id}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_in_ipv4_mapped_form_is_an_ipv4_peer() {
    if std::net::TcpListener::bind("[::]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let mut app = App::start_with(|figment| {
        figment
            .merge(("address", "::"))
            .merge(("trusted_proxies", "::ffff:127.0.0.0/104"))
    })
    .await;
    app.url = format!("http://127.0.0.1:{}", app.url.rsplit(':').next().unwrap());
    assert_seen(
        &app,
        &[
            (&[], "127.0.0.1"),
            (&[("X-Forwarded-For", "192.0.2.1")], "192.0.2.1"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_header_bytes_do_not_hide_the_proxys_client_address() {
    for (header, lines, expected) in [
        (
            "x-forwarded-for",
            &b"X-Forwarded-For: \xff, 203.0.113.9\r\n"[..],
            "203.0.113.9",
        ),
        (
            "x-forwarded-for",
            b"X-Forwarded-For: \xff\r\nX-Forwarded-For: 203.0.113.9, 10.0.0.1\r\n",
            "203.0.113.9",
        ),
        (
            "x-forwarded-for",
            b"X-Forwarded-For: 203.0.113.9, \xff\r\n",
            "nobody",
        ),
        ("x-forwarded-for", b"X-Forwarded-For: \xff\r\n", "nobody"),
        (
            "x-forwarded-for",
            b"X-Forwarded-For: \xc2\xa0203.0.113.9\r\n",
            "nobody",
        ),
        (
            "x-forwarded-for",
            b"User-Agent: \xff\r\nX-Forwarded-For: 203.0.113.9\r\n",
            "203.0.113.9",
        ),
        (
            "x-forwarded-for",
            b"CF-Region: \xcele-de-France\r\nX-Forwarded-For: 203.0.113.9, 10.0.0.1\r\n",
            "203.0.113.9",
        ),
        (
            "forwarded",
            b"Forwarded: for=\xff, for=203.0.113.9\r\n",
            "203.0.113.9",
        ),
        ("forwarded", b"Forwarded: for=\xff\r\n", "nobody"),
    ] {
        let app = behind_proxies(header).await;
        let body =
            json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) }).to_string();
        let head = "POST /api/v1/auth/oauth/idp HTTP/1.1\r\nContent-Type: application/json\r\n";
        let answer = Raw::ask(&app, [head.as_bytes(), lines].concat(), &body).await;
        assert_eq!(
            stored(&app, &answer).await,
            expected,
            "{}",
            String::from_utf8_lossy(lines)
        );
        let metrics = Raw::ask(&app, [b"GET /metrics HTTP/1.1\r\n", lines].concat(), "").await;
        assert_eq!(metrics.status, 404, "{}", String::from_utf8_lossy(lines));
    }
}
