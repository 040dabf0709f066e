//! Rate limits: the refused requests, the others, and the reported times.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use reqwest::Method;
use serde_json::json;
use strum::VariantArray;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;
use vestibule::config::RateLimit;
use vestibule::web::http::rate_limit::{Key, Policy, RateLimits};

use super::{post_with, sign_in_with};
use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::claims;

/// Starts a service with this limit behind a proxy, which is the test.
async fn limited(sign_in_per_minute: u32) -> App {
    App::start_with(|figment| {
        figment
            .merge(("trusted_proxies", ["127.0.0.1"]))
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", sign_in_per_minute))
    })
    .await
}

async fn sign_in_from(app: &App, subject: &str, address: &str) -> Answer {
    let claims = claims(subject, &format!("{subject}@example.com"));
    sign_in_with(app, &claims, &[("X-Forwarded-For", address)]).await
}

fn assert_limited(answer: &Answer) -> u64 {
    assert_problem(answer, 429, "rate_limited");
    let seconds = answer.header("Retry-After").unwrap();
    assert_eq!(
        answer.header("RateLimit").unwrap(),
        format!("\"sign_in\";r=0;t={seconds}")
    );
    assert!(
        answer
            .header("RateLimit-Policy")
            .unwrap()
            .starts_with("\"sign_in\";q=")
    );
    seconds.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_refused_before_any_call_without_affecting_others() {
    let app = limited(2).await;
    for remaining in [1, 0] {
        let answer = sign_in_from(&app, "ada", "192.0.2.1").await;
        assert!(answer.status.is_success(), "{}", answer.text);
        assert_eq!(
            answer.header("RateLimit-Policy"),
            Some("\"sign_in\";q=2;w=60")
        );
        assert_eq!(
            answer.header("RateLimit").unwrap(),
            format!("\"sign_in\";r={remaining};t=30")
        );
        assert_eq!(answer.header("Retry-After"), None);
    }
    let calls = app.provider.calls();
    let rows = app.database.rows().await;
    for _ in 0..10 {
        let seconds = assert_limited(&sign_in_from(&app, "ada", "192.0.2.1").await);
        assert!((1..=30).contains(&seconds), "{seconds}");
    }
    assert_eq!(
        (app.provider.calls(), app.database.rows().await),
        (calls, rows)
    );
    // The same person at another address is not limited by the flood.
    let elsewhere = sign_in_from(&app, "ada", "192.0.2.2").await;
    assert_eq!(
        elsewhere.header("RateLimit"),
        Some("\"sign_in\";r=1;t=30"),
        "{}",
        elsewhere.text
    );
    assert!(elsewhere.status.is_success());
    // Every response has the state of the limit.
    let malformed = post_with(&app, &json!({}), &[("X-Forwarded-For", "192.0.2.3")]).await;
    assert_problem(&malformed, 400, "invalid_request");
    assert_eq!(malformed.header("RateLimit"), Some("\"sign_in\";r=1;t=30"));
    let page = app
        .send(Method::GET, "/problems/rate_limited", None, "")
        .await;
    assert_eq!(
        (page.status.as_u16(), page.header("RateLimit")),
        (200, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_headers_do_not_evade_the_limit() {
    let app = App::start_with(|figment| {
        figment
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", 2))
    })
    .await;
    for (number, limited) in [(1, false), (2, false), (3, true)] {
        let forged = format!("192.0.2.{number}");
        let headers = ["X-Forwarded-For", "X-Real-IP"].map(|name| (name, forged.as_str()));
        let answer = sign_in_with(&app, &claims("ada", "ada@example.com"), &headers).await;
        assert_eq!(answer.status == 429, limited, "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_is_not_waited_for() {
    let app = limited(1).await;
    sign_in_from(&app, "ada", "192.0.2.1").await;
    let mut stream = TcpStream::connect(app.url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let head = "POST /api/v1/auth/oauth/idp HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\n\
                Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"id_token\":\"eyJhbGciOi";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    // Rocket reads the first 14 bytes of every body before other code sees the request. The client
    // sends nothing more, and a further read would wait for ten seconds.
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut answer)).await;
    read.expect("it is answered at once").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 429");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_are_switched_off_say_nothing() {
    let app = App::start_with(|figment| figment.merge(("rate_limit.sign_in_per_minute", 1))).await;
    for _ in 0..5 {
        let answer = sign_in_with(&app, &claims("ada", "ada@example.com"), &[]).await;
        assert!(answer.status.is_success());
        assert_eq!(
            (
                answer.header("RateLimit"),
                answer.header("RateLimit-Policy")
            ),
            (None, None)
        );
    }
}

fn settings(per_minute: u32) -> RateLimit {
    let per_minute = NonZeroU32::new(per_minute).unwrap();
    RateLimit {
        enabled: true,
        sign_in_per_minute: per_minute,
        refresh_per_minute: per_minute,
        session_per_minute: per_minute,
        staff_pages_per_minute: per_minute,
        api_key_per_minute: per_minute,
    }
}

fn address(text: &str) -> Key {
    Key::address(Some(text.parse::<IpAddr>().unwrap()))
}

#[test]
fn a_bucket_refills_steadily_whatever_was_refused() {
    let clock = FakeRelativeClock::default();
    let limits = RateLimits::with_clock(&settings(6), &clock);
    let ask = || limits.count(Policy::SignIn, address("192.0.2.1")).unwrap();
    for remaining in (0..6).rev() {
        let standing = ask();
        assert_eq!(
            (standing.admitted, standing.remaining, standing.seconds),
            (true, remaining, 10)
        );
    }
    for second in 0..10 {
        let standing = ask();
        assert_eq!((standing.admitted, standing.seconds), (false, 10 - second));
        clock.advance(Duration::from_secs(1));
    }
    assert!(ask().admitted);
    clock.advance(Duration::from_millis(8500));
    assert_eq!(ask().seconds, 2, "rounded up");
    clock.advance(Duration::from_hours(1));
    assert_eq!(ask().remaining, 5, "no more than a minute's worth is saved");
}

#[test]
fn every_policy_and_every_key_has_a_bucket_of_its_own() {
    let limits = RateLimits::with_clock(&settings(1), &FakeRelativeClock::default());
    let session = Uuid::now_v7();
    for &policy in Policy::VARIANTS {
        for key in [
            address("192.0.2.1"),
            address("192.0.2.2"),
            address("2001:db8:0:1::1"),
            address("::1"),
            address("0.0.0.0"),
            Key::session(session, "192.0.2.1".parse().ok()),
            Key::session(session, "2001:db8:0:1::1".parse().ok()),
            Key::api_key(session),
        ] {
            // An address may send five times as many requests with access tokens as refreshes.
            let expected = if policy == Policy::Bearer { 5 } else { 1 };
            let admitted = (0..10)
                .filter(|_| limits.count(policy, key).unwrap().admitted)
                .count();
            assert_eq!(admitted, expected, "{policy:?} {key:?}");
        }
    }
    assert!(
        !limits
            .count(Policy::SignIn, address("2001:db8:0:1:ffff::"))
            .unwrap()
            .admitted
    );
}

#[test]
fn an_ipv6_site_gets_sixteen_times_a_networks_limit() {
    let clock = FakeRelativeClock::default();
    let limits = RateLimits::with_clock(&settings(2), &clock);
    let ask = |address: &str| {
        limits
            .count(Policy::SignIn, Key::address(address.parse().ok()))
            .unwrap()
    };
    // One network cannot exhaust its neighbours' share.
    assert_eq!(
        (0..100)
            .filter(|_| ask("2001:db8:1:ffff::1").admitted)
            .count(),
        2
    );
    let admitted = (0..1_000)
        .filter(|network| ask(&format!("2001:db8:1:{network:x}::1")).admitted)
        .count();
    assert_eq!(admitted, 30);
    let refused = ask("2001:db8:1:eeee::1");
    assert!(!refused.admitted && refused.seconds > 0, "{refused:?}");
    assert!(
        ask("2001:db8:2:1::1").admitted && ask("192.0.2.1").admitted,
        "the next site, and IPv4"
    );
    clock.advance(Duration::from_secs(4));
    assert!(ask("2001:db8:1:eeee::1").admitted, "it refills");
    clock.advance(Duration::from_mins(2));
    limits.sweep();
    assert_eq!(limits.keys(), 0);
}

#[test]
fn what_is_over_is_forgotten_and_what_is_not_is_kept() {
    let clock = FakeRelativeClock::default();
    let limits = RateLimits::with_clock(&settings(60), &clock);
    for number in 0..10_000 {
        let _ = limits.count(
            Policy::SignIn,
            Key::address(Some(IpAddr::V4(number.into()))),
        );
    }
    let busy = || {
        limits
            .count(Policy::SignIn, address("192.0.2.1"))
            .unwrap()
            .admitted
    };
    while busy() {}
    assert_eq!(limits.keys(), 10_001);
    clock.advance(Duration::from_secs(10));
    limits.sweep();
    assert_eq!(limits.keys(), 1, "a sweep does not forgive");
    assert!((0..10).all(|_| busy()) && !busy());
    clock.advance(Duration::from_secs(62));
    limits.sweep();
    assert_eq!(limits.keys(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_access_token_cannot_exhaust_its_owners_limit() {
    let app = App::start_with(|figment| {
        figment
            .merge(("trusted_proxies", ["127.0.0.1"]))
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.session_per_minute", 2))
    })
    .await;
    let bearer = format!(
        "Bearer {}",
        app.sign_in(&claims("ada", "ada@example.com"))
            .await
            .access_token()
    );
    let me = async |address: &str| {
        let headers = [("X-Forwarded-For", address), ("Authorization", &bearer)];
        app.send_with(Method::GET, "/api/v1/me", &headers, "")
            .await
            .status
            .as_u16()
    };
    let thief = [
        me("192.0.2.1").await,
        me("192.0.2.1").await,
        me("192.0.2.1").await,
    ];
    assert_eq!((thief, me("198.51.100.7").await), ([200, 200, 429], 200));
    // An IPv6 network counts as one address, and all networks of a site share a limit.
    let mut admitted = 0;
    for number in 0..40 {
        admitted += u32::from(me(&format!("2001:db8:0:{number:x}::1")).await == 200);
    }
    assert!((32..40).contains(&admitted), "{admitted}");
    assert_eq!(me("2001:db8:1::1").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn renames_are_limited_to_ten_per_minute() {
    let app = App::start_with(|figment| figment.merge(("rate_limit.enabled", true))).await;
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    let rename = async |number: u32| {
        let body = json!({ "name": format!("Ada {number}") });
        app.as_user(&token, Method::PATCH, "/api/v1/me", Some(&body))
            .await
    };
    let mut answers = Vec::new();
    for number in 0..30 {
        answers.push(rename(number).await);
    }
    let changed = answers.iter().filter(|answer| answer.status == 200).count();
    assert!((10..30).contains(&changed), "{changed}");
    let events = app
        .database
        .value::<i64>("SELECT count(*) FROM events WHERE kind = 'user_updated'")
        .await;
    assert_eq!(usize::try_from(events).unwrap(), changed);
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    assert_problem(refused, 429, "rate_limited");
    assert!(
        refused
            .header("Retry-After")
            .is_some_and(|seconds| seconds.parse::<u32>().unwrap() <= 6)
    );
    let mut policies = refused.headers.get_all("RateLimit-Policy").iter();
    assert!(
        policies.any(|policy| policy == "\"name\";q=10;w=60"),
        "{:?}",
        refused.headers
    );
    assert_eq!(
        app.get(&token, "/api/v1/me").await.status,
        200,
        "other requests are not affected"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshes_are_counted_by_address_and_account_requests_by_session() {
    let app = App::start_with(|figment| {
        figment
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.refresh_per_minute", 3))
            .merge(("rate_limit.session_per_minute", 3))
    })
    .await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    for _ in 0..3 {
        assert_eq!(app.get(&ada.access_token(), "/api/v1/me").await.status, 200);
    }
    let refused = app.get(&ada.access_token(), "/api/v1/me/sessions").await;
    assert_problem(&refused, 429, "rate_limited");
    assert!(
        refused
            .header("RateLimit")
            .unwrap()
            .starts_with("\"session\";r=0")
    );
    assert_eq!(
        app.get(&grace.access_token(), "/api/v1/me").await.status,
        200,
        "another session"
    );

    let mut token = ada.refresh_token();
    for _ in 0..3 {
        let answer = app.refresh(&token).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        token = answer.refresh_token();
    }
    let refused = app.refresh(&token).await;
    assert_problem(&refused, 429, "rate_limited");
}

/// Sends a request with an access token from an address.
async fn with_session(app: &App, method: Method, path: &str, token: &str, address: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("X-Forwarded-For", address),
        ("Authorization", &bearer),
        ("Content-Type", "application/json"),
    ];
    app.send_with(method, path, &headers, "{}").await
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_at_one_address_share_a_limit_on_all_routes() {
    let app = App::start_with(|figment| {
        figment
            .merge(("trusted_proxies", ["127.0.0.1"]))
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.session_per_minute", 12))
            .merge(("rate_limit.refresh_per_minute", 12))
    })
    .await;
    let mut tokens = Vec::new();
    for person in 0..60 {
        let address = format!("198.51.100.{person}");
        tokens.push(
            sign_in_from(&app, &format!("person-{person}"), &address)
                .await
                .access_token(),
        );
    }
    // Together as many requests as sixty sessions may send, and for each session fewer than it may
    // send.
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    for round in 0..11 {
        for token in &tokens {
            let answer = with_session(&app, Method::GET, "/api/v1/me", token, "192.0.2.1").await;
            *statuses.entry(answer.status.as_u16()).or_default() += 1;
            if answer.status == 429 {
                assert_problem(&answer, 429, "rate_limited");
                assert!(
                    answer
                        .header("Retry-After")
                        .unwrap()
                        .parse::<u32>()
                        .unwrap()
                        > 0,
                    "{round}"
                );
                assert!(
                    answer
                        .header("RateLimit")
                        .unwrap()
                        .starts_with("\"bearer\";r=0;t=")
                );
                assert_eq!(
                    answer.header("RateLimit-Policy"),
                    Some("\"bearer\";q=60;w=60")
                );
            } else {
                assert_eq!(answer.status, 200, "{}", answer.text);
            }
        }
    }
    assert!((60..100).contains(&statuses[&200]), "{statuses:?}");
    // Every route has the limit, not only the first, and at another address the same users are not
    // limited.
    let mut limited = 0;
    for (method, path) in &app.routes {
        if !path.starts_with("/api/v1/me") {
            continue;
        }
        let path = path
            .replace("<_>", "idp")
            .replace("<id>", &Uuid::nil().to_string());
        let method = Method::from_bytes(method.as_str().as_bytes()).unwrap();
        // By now another request may be allowed.
        let mut refused = with_session(&app, method.clone(), &path, &tokens[1], "192.0.2.1").await;
        if refused.status != 429 {
            refused = with_session(&app, method.clone(), &path, &tokens[2], "192.0.2.1").await;
        }
        assert_problem(&refused, 429, "rate_limited");
        let elsewhere = with_session(&app, method, &path, &tokens[0], "192.0.2.2").await;
        assert_ne!(elsewhere.status, 429, "{path}: {}", elsewhere.text);
        limited += 1;
    }
    assert!(limited >= 9, "{:?}", app.routes);
    // An IPv6 subscriber is a /64.
    let mut admitted = 0;
    for number in 0..80 {
        let address = format!("2001:db8:0:1::{number:x}");
        let answer = with_session(
            &app,
            Method::GET,
            "/api/v1/me",
            &tokens[number % 60],
            &address,
        )
        .await;
        admitted += u32::from(answer.status != 429);
    }
    assert!((60..75).contains(&admitted), "{admitted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_sessions_share_one_rename_limit_across_addresses() {
    let app = App::start_with(|figment| {
        figment
            .merge(("trusted_proxies", ["127.0.0.1"]))
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", 100))
    })
    .await;
    let mut renamed = 0;
    let mut refused = None;
    for session in 0..30 {
        let address = format!("198.51.100.{session}");
        let token = sign_in_from(&app, "ada", &address).await.access_token();
        for number in 0..3 {
            let body = json!({ "name": format!("Ada {session} {number}") }).to_string();
            let bearer = format!("Bearer {token}");
            let headers = [
                ("X-Forwarded-For", &*address),
                ("Authorization", &bearer),
                ("Content-Type", "application/json"),
            ];
            let answer = app
                .send_with(Method::PATCH, "/api/v1/me", &headers, body)
                .await;
            if answer.status == 200 {
                renamed += 1;
            } else {
                assert_problem(&answer, 429, "rate_limited");
                refused = Some(answer);
            }
        }
    }
    assert!((10..45).contains(&renamed), "{renamed}");
    let refused = refused.unwrap();
    let mut policies = refused.headers.get_all("RateLimit-Policy").iter();
    assert!(
        policies.any(|policy| policy == "\"name\";q=10;w=60"),
        "{:?}",
        refused.headers
    );
    let other = sign_in_from(&app, "grace", "198.51.100.1")
        .await
        .access_token();
    let body = json!({ "name": "Grace" });
    let answer = app
        .as_user(&other, Method::PATCH, "/api/v1/me", Some(&body))
        .await;
    assert_eq!(answer.status, 200, "another user");
}
