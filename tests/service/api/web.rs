//! Sessions of web pages: the refresh token in a cookie, and CORS.

use std::collections::BTreeMap;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::race::{at_once, rounds};
use crate::support::token::{claims, encode};

const PAGE: &str = "https://app.example.com";
const REFRESH: &str = "/api/v1/auth/refresh";
const LOGOUT: &str = "/api/v1/auth/logout";
const SIGN_IN: &str = "/api/v1/auth/oauth/idp";
const JSON: &[(&str, &str)] = &[("Origin", PAGE), ("Content-Type", "application/json")];

/// Starts a service that lists one page's origin.
async fn with_page() -> App {
    App::start_with(|figment| figment.merge(("web.origins", [PAGE]))).await
}

/// Posts JSON from the page, optionally with a cookie.
async fn post(app: &App, path: &str, cookie: Option<&str>, body: &str) -> Answer {
    let cookie = cookie.map(|cookie| ("Cookie", cookie));
    let headers: Vec<_> = JSON.iter().copied().chain(cookie).collect();
    app.send_with(Method::POST, path, &headers, body.to_owned())
        .await
}

fn asking(app: &App, claims: &Value) -> String {
    json!({ "id_token": app.token(claims), "session": "cookie" }).to_string()
}

/// Signs in from the page.
async fn sign_in(app: &App) -> Answer {
    let answer = post(
        app,
        SIGN_IN,
        None,
        &asking(app, &claims("ada", "ada@example.com")),
    )
    .await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer
}

/// Returns the cookie that a response sets: name and value, and the attributes.
fn set_cookie(headers: &HeaderMap) -> Option<(String, Vec<String>)> {
    let all: Vec<_> = headers.get_all("Set-Cookie").iter().collect();
    assert!(all.len() < 2, "{all:?}");
    let mut parts = all
        .first()?
        .to_str()
        .unwrap()
        .split("; ")
        .map(str::to_owned);
    let pair = parts.next()?;
    let mut attributes: Vec<_> = parts.filter(|part| !part.starts_with("Expires=")).collect();
    attributes.sort();
    Some((pair, attributes))
}

/// Returns the cookie as the browser sends it.
fn cookie(answer: &Answer) -> String {
    set_cookie(&answer.headers)
        .unwrap_or_else(|| panic!("no cookie: {}", answer.text))
        .0
}

#[track_caller]
fn assert_deleted(answer: &Answer) {
    let attributes = ["HttpOnly", "Max-Age=0", "Path=/", "SameSite=Strict"].map(str::to_owned);
    assert_eq!(
        set_cookie(&answer.headers),
        Some(("vestibule=".into(), attributes.to_vec()))
    );
}

#[track_caller]
fn assert_kept(answer: &Answer) {
    assert_eq!(set_cookie(&answer.headers), None, "{}", answer.text);
}

async fn live_sessions(app: &App) -> i64 {
    app.database
        .count("SELECT count(*) FROM sessions WHERE ended_at IS NULL")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pages_refresh_token_is_only_in_its_cookie() {
    for (public_url, name, secure) in [
        ("http://127.0.0.1:8000", "vestibule", false),
        ("https://id.example.com", "__Host-vestibule", true),
    ] {
        let app = App::start_with(|figment| {
            figment
                .merge(("web.origins", [PAGE]))
                .merge(("public_url", public_url))
        })
        .await;
        let mut answer = sign_in(&app).await;
        assert_eq!(answer.status, 201);
        for body in ["", "{}", ""] {
            let (pair, attributes) = set_cookie(&answer.headers).expect("a cookie");
            let (named, token) = pair.split_once('=').unwrap();
            let mut expected = vec!["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=Strict"];
            expected.extend(secure.then_some("Secure"));
            assert_eq!(
                (named, attributes),
                (name, expected.iter().map(ToString::to_string).collect())
            );
            let told = answer.text.contains("refresh_token\"") || answer.text.contains(token);
            assert!(!told, "{}", answer.text);
            let told = answer.json();
            assert_eq!(
                (&told["refresh_expires_in"], &told["expires_in"]),
                (&2_592_000.into(), &900.into())
            );
            assert_eq!(
                app.get(&answer.access_token(), "/api/v1/me").await.status,
                200
            );
            answer = post(&app, REFRESH, Some(&pair), body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        assert_eq!(app.database.rows().await, [1, 1, 1], "of one session");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_body_takes_precedence_over_the_cookie() {
    let app = with_page().await;
    let pair = cookie(&sign_in(&app).await);
    let phone = app.sign_in(&claims("grace", "grace@example.com")).await;
    let body = json!({ "refresh_token": phone.refresh_token() }).to_string();
    let refreshed = post(&app, REFRESH, Some(&pair), &body).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    assert!(!refreshed.refresh_token().is_empty());
    assert_kept(&refreshed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_rotates_as_a_phones_token_does() {
    let app = with_page().await;
    let parent = cookie(&sign_in(&app).await);
    let lost = post(&app, REFRESH, Some(&parent), "").await;
    assert_eq!(
        cookie(&post(&app, REFRESH, Some(&parent), "").await),
        cookie(&lost),
        "another tab"
    );
    app.half_a_minute_later().await;
    let found = post(&app, REFRESH, Some(&parent), "").await;
    assert_eq!(found.status, 200, "{}", found.text);
    assert_ne!(
        cookie(&found),
        cookie(&lost),
        "the lost answer is made good"
    );
    let next = post(&app, REFRESH, Some(&cookie(&found)), "").await;
    let stolen = post(&app, REFRESH, Some(&parent), "").await;
    assert_problem(&stolen, 401, "invalid_refresh_token");
    assert_eq!(stolen.json()["reason"], "refresh_token_reused");
    let owner = post(&app, REFRESH, Some(&cookie(&next)), "").await;
    assert_eq!(owner.json()["reason"], "session_ended", "both are out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_refresh_keeps_the_cookie_until_another_sign_in() {
    let app = with_page().await;
    let expired = cookie(&sign_in(&app).await);
    app.database
        .run("UPDATE sessions SET expires_at = now()")
        .await;
    for (pair, reason) in [
        (&*expired, json!("session_expired")),
        ("vestibule=made-up", json!(null)),
        ("vestibule=", json!(null)),
    ] {
        for _ in ["the first load of the page", "the next one"] {
            let answer = post(&app, REFRESH, Some(pair), "").await;
            assert_problem(&answer, 401, "invalid_refresh_token");
            assert_eq!(answer.json()["reason"], reason, "{pair}");
            assert_kept(&answer);
        }
    }
    let body = asking(&app, &claims("ada", "ada@example.com"));
    let later = cookie(&post(&app, SIGN_IN, Some(&expired), &body).await);
    assert_eq!(
        post(&app, REFRESH, Some(&later), "").await.status,
        200,
        "a sign-in replaces it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_that_refresh_at_once_agree() {
    let app = with_page().await;
    let mut shared = cookie(&sign_in(&app).await);
    for round in 0..rounds() {
        let tab = || post(&app, REFRESH, Some(&shared), "");
        let (one, other) = at_once(tab(), tab()).await;
        assert_eq!(
            [one.status, other.status],
            [200; 2],
            "{round}: {} {}",
            one.text,
            other.text
        );
        assert_eq!(cookie(&one), cookie(&other), "{round}");
        shared = cookie(&one);
    }
    let replays = "SELECT count(*) FROM events WHERE kind = 'refresh_token_replayed'";
    assert_eq!(app.database.count(replays).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_on_which_nobody_has_signed_in_is_told_so() {
    let app = with_page().await;
    for body in ["", "{}"] {
        let answer = post(&app, REFRESH, None, body).await;
        assert_problem(&answer, 401, "invalid_refresh_token");
        assert_kept(&answer);
    }
    let phone = app.send_with(Method::POST, REFRESH, &JSON[1..], "{}").await;
    assert_problem(&phone, 400, "invalid_request");
}

/// Headers that no browser sends with the cookie for a listed page: from another page, a form, a
/// frame, a navigation.
const ELSEWHERE: [&[(&str, &str)]; 11] = [
    &[("Content-Type", "application/json")],
    &[
        ("Origin", "https://evil.example"),
        ("Content-Type", "application/json"),
    ],
    &[
        ("Origin", "https://app.example.com.evil.example"),
        ("Content-Type", "application/json"),
    ],
    &[
        ("Origin", "http://app.example.com"),
        ("Content-Type", "application/json"),
    ],
    &[
        ("Origin", "https://app.example.com:8443"),
        ("Content-Type", "application/json"),
    ],
    &[("Origin", "null"), ("Content-Type", "application/json")],
    &[
        ("Origin", PAGE),
        ("Origin", "https://evil.example"),
        ("Content-Type", "application/json"),
    ],
    &[
        ("Sec-Fetch-Site", "same-origin"),
        ("Content-Type", "application/json"),
    ],
    &[("Origin", PAGE)],
    &[("Origin", PAGE), ("Content-Type", "text/plain")],
    &[
        ("Origin", "https://evil.example"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ],
];

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_that_comes_from_elsewhere_is_refused_and_counted() {
    let app = with_page().await;
    let pair = cookie(&sign_in(&app).await);
    let calls = app.provider.calls();
    let mut refused = 0;
    for headers in ELSEWHERE {
        for path in [REFRESH, LOGOUT, SIGN_IN] {
            let headers: Vec<_> = headers
                .iter()
                .copied()
                .chain([("Cookie", &*pair)])
                .collect();
            let answer = app.send_with(Method::POST, path, &headers, "{}").await;
            assert_problem(&answer, 403, "cookie_refused");
            assert_kept(&answer);
            refused += 1;
        }
    }
    assert_eq!(app.provider.calls(), calls);
    let metrics = app.send_with(Method::GET, "/metrics", &[], "").await.text;
    let counted = format!("vestibule_problems_total{{error=\"cookie_refused\"}} {refused}\n");
    assert!(metrics.contains(&counted), "{metrics}");
    assert_eq!(
        post(&app, REFRESH, Some(&pair), "").await.status,
        200,
        "nothing has happened to the session"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_own_pages_count_if_they_are_listed() {
    let own = "http://127.0.0.1:8000";
    let app = App::start_with(|figment| figment.merge(("web.origins", [own]))).await;
    let headers = [("Sec-Fetch-Site", "same-origin"), JSON[1]];
    let body = asking(&app, &claims("ada", "ada@example.com"));
    let pair = cookie(&app.send_with(Method::POST, SIGN_IN, &headers, body).await);
    for (site, status) in [
        ("same-origin", 200),
        ("same-site", 403),
        ("cross-site", 403),
        ("none", 403),
    ] {
        let headers = [("Sec-Fetch-Site", site), JSON[1], ("Cookie", &*pair)];
        assert_eq!(
            app.send_with(Method::POST, REFRESH, &headers, "")
                .await
                .status,
            status,
            "{site}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_listed_page_signs_a_browser_in() {
    let app = with_page().await;
    let body = asking(&app, &claims("ada", "ada@example.com"));
    let calls = app.provider.calls();
    for (number, headers) in ELSEWHERE.iter().enumerate() {
        let answer = app
            .send_with(Method::POST, SIGN_IN, headers, body.clone())
            .await;
        let (status, error) = if number < 8 {
            (403, "cookie_refused")
        } else {
            (415, "unsupported_media_type")
        };
        assert_problem(&answer, status, error);
    }
    for session in [json!("token"), json!(true), json!({}), json!("")] {
        let body = json!({ "id_token": "a.b.c", "session": session }).to_string();
        assert_problem(
            &post(&app, SIGN_IN, None, &body).await,
            400,
            "invalid_request",
        );
    }
    let off = App::start().await;
    let answer = post(
        &off,
        SIGN_IN,
        None,
        &asking(&off, &claims("ada", "ada@example.com")),
    )
    .await;
    assert_problem(&answer, 400, "invalid_request");
    assert!(answer.text.contains("web.origins"), "{}", answer.text);
    assert_eq!(
        (app.provider.calls(), app.database.rows().await),
        (calls, [0, 0, 0])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_beside_another_sessions_access_token_is_refused() {
    let app = with_page().await;
    let first = sign_in(&app).await;
    let second = sign_in(&app).await;
    let other = app.sign_in(&claims("grace", "grace@example.com")).await;
    let pair = cookie(&second);
    // An unsigned token, since tests cannot sign an expired one. Its `sid` alone counts.
    let session = app.database.count("SELECT count(*) FROM sessions").await;
    let stale = encode(
        r#"{"alg":"ES256"}"#,
        r#"{"sid":"0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e13"}"#,
    );
    for bearer in [&first.access_token(), &other.access_token(), &stale] {
        for path in [REFRESH, LOGOUT, "/api/v1/auth/logout?scope=global"] {
            let bearer = format!("Bearer {bearer}");
            let headers = [
                JSON[0],
                JSON[1],
                ("Cookie", &*pair),
                ("Authorization", &*bearer),
            ];
            let answer = app.send_with(Method::POST, path, &headers, "").await;
            assert_problem(&answer, 403, "cookie_refused");
            assert_kept(&answer);
        }
    }
    assert_eq!(live_sessions(&app).await, session);
    let bearer = format!("Bearer {}", second.access_token());
    let headers = [
        JSON[0],
        JSON[1],
        ("Cookie", &*pair),
        ("Authorization", &*bearer),
    ];
    assert_eq!(
        app.send_with(Method::POST, REFRESH, &headers, "")
            .await
            .status,
        200,
        "its own"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_signs_out_by_cookie_or_access_token() {
    let app = with_page().await;
    for (scope, left, gone) in [
        ("local", 2, true),
        ("others", 1, false),
        ("global", 0, true),
    ] {
        for by_bearer in [true, false] {
            app.database.run("DELETE FROM sessions").await;
            let [first, _, _] = [
                sign_in(&app).await,
                sign_in(&app).await,
                sign_in(&app).await,
            ];
            let pair = cookie(&first);
            let token = first.access_token();
            let bearer = if by_bearer {
                format!("Bearer {token}")
            } else {
                "Bearer expired".into()
            };
            let headers = [
                JSON[0],
                JSON[1],
                ("Cookie", &*pair),
                ("Authorization", &*bearer),
            ];
            let path = format!("{LOGOUT}?scope={scope}");
            let answer = app.send_with(Method::POST, &path, &headers, "").await;
            assert_eq!(answer.status, 204, "{}", answer.text);
            if gone {
                assert_deleted(&answer);
            } else {
                assert_kept(&answer);
            }
            assert_eq!(live_sessions(&app).await, left, "{scope}");
            let refreshed = post(&app, REFRESH, Some(&pair), "").await;
            assert_eq!(refreshed.status == 401, gone, "{scope}: {}", refreshed.text);
        }
    }
    let answer = post(&app, LOGOUT, Some("vestibule=made-up"), "").await;
    assert_eq!(answer.status, 204, "as for an unknown token in a body");
    assert_deleted(&answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_out_by_body_token_deletes_only_that_sessions_cookie() {
    let app = with_page().await;
    for scope in ["local", "global", "others"] {
        let page = sign_in(&app).await;
        let pair = cookie(&page);
        let other = app
            .sign_in(&claims("grace", "grace@example.com"))
            .await
            .refresh_token();
        let cookies_own = pair.split_once('=').unwrap().1;
        for (token, ends) in [
            (&*other, false),
            ("made-up", false),
            (cookies_own, scope != "others"),
        ] {
            let body = json!({ "refresh_token": token }).to_string();
            let answer = post(&app, &format!("{LOGOUT}?scope={scope}"), Some(&pair), &body).await;
            assert_eq!(answer.status, 204, "{}", answer.text);
            if ends {
                assert_deleted(&answer);
            } else {
                assert_kept(&answer);
            }
            let refreshed = post(&app, REFRESH, Some(&pair), "").await;
            assert_eq!(
                refreshed.status,
                if ends { 401 } else { 200 },
                "{scope} {token}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_page_may_send_the_headers_that_its_instruments_add() {
    let app = with_page().await;
    let base = "Authorization, Content-Type, DPoP";
    for (asked, allowed) in [
        (
            &["baggage, sentry-trace, traceparent"][..],
            "baggage, sentry-trace, traceparent",
        ),
        (&["authorization,content-type,dpop"], ""),
        (
            &["x-datadog-trace-id,\tTracestate ,, b3"],
            "x-datadog-trace-id, Tracestate, b3",
        ),
        (&["baggage", "uber-trace-id"], "baggage, uber-trace-id"),
        (
            &[
                "content-type,traceparent,tracestate,x-datadog-origin,x-datadog-parent-id,x-datadog-sampling-priority,x-datadog-trace-id",
            ],
            "traceparent, tracestate, x-datadog-origin, x-datadog-parent-id, x-datadog-sampling-priority, x-datadog-trace-id",
        ),
        (
            &["authorization,request-context,request-id"],
            "request-context, request-id",
        ),
        // The response repeats only valid header names.
        (&["baggage, a b, x:y, \u{e9}, \"q\", *"], "baggage, *"),
        (&[""], ""),
        (&[], ""),
    ] {
        let asked = asked
            .iter()
            .map(|names| ("Access-Control-Request-Headers", *names));
        let headers: Vec<_> = preflight(PAGE)[..2].iter().copied().chain(asked).collect();
        let answer = app.send_with(Method::OPTIONS, SIGN_IN, &headers, "").await;
        assert_eq!(answer.status, 204, "{headers:?} {}", answer.text);
        let expected = [base, allowed]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        assert_eq!(
            answer.header("Access-Control-Allow-Headers"),
            Some(&*expected),
            "{headers:?}"
        );
    }
    let long = "x".repeat(9_000);
    let headers = [
        JSON[0],
        preflight(PAGE)[1],
        ("Access-Control-Request-Headers", &*long),
    ];
    let answer = app.send_with(Method::OPTIONS, SIGN_IN, &headers, "").await;
    assert_eq!(
        answer.header("Access-Control-Allow-Headers"),
        Some(base),
        "no name is as long"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_views_page_calls_the_api_without_cookies() {
    for origin in [
        "capacitor://localhost",
        "ionic://localhost",
        "app://bundle",
        "tauri://localhost",
    ] {
        let app = App::start_with(|figment| figment.merge(("web.origins", [origin]))).await;
        let headers = [("Origin", origin), JSON[1]];
        let who = claims("ada", "ada@example.com");
        let asking_cookie = app
            .send_with(Method::POST, SIGN_IN, &headers, asking(&app, &who))
            .await;
        assert_problem(&asking_cookie, 403, "cookie_refused");
        assert!(
            asking_cookie.text.contains("web view"),
            "{}",
            asking_cookie.text
        );
        let body = json!({ "id_token": app.token(&who) }).to_string();
        let answer = app.send_with(Method::POST, SIGN_IN, &headers, body).await;
        assert!(!answer.refresh_token().is_empty(), "{}", answer.text);
        assert_eq!(answer.header("Access-Control-Allow-Origin"), Some(origin));
        assert_eq!(answer.header("Access-Control-Allow-Credentials"), None);
        let refresh = json!({ "refresh_token": answer.refresh_token() }).to_string();
        assert_eq!(
            app.send_with(Method::POST, REFRESH, &headers, refresh)
                .await
                .status,
            200
        );
        let pair = format!("vestibule={}", answer.refresh_token());
        let headers = [headers[0], headers[1], ("Cookie", &*pair)];
        let with_cookie = app.send_with(Method::POST, REFRESH, &headers, "{}").await;
        assert_problem(&with_cookie, 403, "cookie_refused");
        let preflight = app
            .send_with(Method::OPTIONS, REFRESH, &preflight(origin), "")
            .await;
        assert_eq!(
            (
                preflight.status.as_u16(),
                preflight.header("Access-Control-Allow-Origin")
            ),
            (204, Some(origin))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_user_the_sessions_cookie_goes() {
    let app = with_page().await;
    let deleting = sign_in(&app).await;
    let other = app.sign_in(&claims("grace", "grace@example.com")).await;
    let pair = cookie(&deleting);
    for (answer, deleted) in [(&other, false), (&deleting, true)] {
        let bearer = format!("Bearer {}", answer.access_token());
        let headers = [JSON[0], ("Cookie", &*pair), ("Authorization", &*bearer)];
        let answer = app
            .send_with(Method::DELETE, "/api/v1/me", &headers, "")
            .await;
        assert_eq!(answer.status, 204, "{}", answer.text);
        if deleted {
            assert_deleted(&answer);
        } else {
            assert_kept(&answer);
        }
    }
}

/// Returns the mounted methods of each path under `/api/v1`.
fn of_apps(app: &App) -> BTreeMap<String, Vec<&'static str>> {
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    for (method, path) in &app.routes {
        if path.starts_with("/api/v1/") {
            let filled = |part| {
                if str::starts_with(part, '<') {
                    "idp"
                } else {
                    part
                }
            };
            let path: Vec<_> = path.split('/').map(filled).collect();
            paths
                .entry(path.join("/"))
                .or_default()
                .push(method.as_str());
        }
    }
    paths
}

fn preflight(origin: &str) -> [(&str, &str); 3] {
    [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn only_app_routes_respond_to_preflights_and_only_from_listed_origins() {
    let app = with_page().await;
    let paths = of_apps(&app);
    assert!(paths.len() > 30, "{paths:?}");
    let mut answered = Vec::new();
    for (path, methods) in &paths {
        let answer = app
            .send_with(Method::OPTIONS, path, &preflight(PAGE), "")
            .await;
        if path.starts_with("/api/v1/admin") || path.starts_with("/api/v1/providers") {
            assert_problem(&answer, 405, "method_not_allowed");
            assert_foreign(&answer);
            continue;
        }
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (204, ""),
            "{path}"
        );
        assert_shared(&answer);
        let mut allowed: Vec<_> = answer
            .header("Access-Control-Allow-Methods")
            .unwrap()
            .split(", ")
            .collect();
        let mut methods = methods.clone();
        allowed.sort_unstable();
        methods.sort_unstable();
        assert_eq!(allowed, methods, "{path}");
        assert_eq!(
            answer.header("Access-Control-Allow-Headers"),
            Some("Authorization, Content-Type, DPoP")
        );
        assert_eq!(answer.header("Access-Control-Max-Age"), Some("7200"));
        let foreign = app
            .send_with(
                Method::OPTIONS,
                path,
                &preflight("https://evil.example"),
                "",
            )
            .await;
        assert_problem(&foreign, 405, "method_not_allowed");
        assert_foreign(&foreign);
        assert_eq!(foreign.header("Vary"), Some("Origin"));
        answered.push(path.as_str());
    }
    for path in [
        SIGN_IN,
        REFRESH,
        LOGOUT,
        "/api/v1/me",
        "/api/v1/me/merge",
        "/api/v1/auth/providers",
    ] {
        assert!(answered.contains(&path), "{answered:?}");
    }
    let unasked = app
        .send_with(Method::OPTIONS, REFRESH, &[("Origin", PAGE)], "")
        .await;
    assert_problem(&unasked, 405, "method_not_allowed");
    for path in [
        "/api/v1/nothing",
        "/.well-known/jwks.json",
        "/admin",
        "/readyz",
    ] {
        let answer = app
            .send_with(Method::OPTIONS, path, &preflight(PAGE), "")
            .await;
        assert!(answer.status.as_u16() >= 400, "{path}");
    }
}

/// Asserts that the page may read the response.
#[track_caller]
fn assert_shared(answer: &Answer) {
    assert_eq!(
        answer.header("Access-Control-Allow-Origin"),
        Some(PAGE),
        "{answer:?}"
    );
    assert_eq!(
        answer.header("Access-Control-Allow-Credentials"),
        Some("true")
    );
    assert_eq!(answer.header("Vary"), Some("Origin"));
    let exposed = answer.header("Access-Control-Expose-Headers").unwrap();
    for header in ["Retry-After", "X-Request-Id", "WWW-Authenticate"] {
        assert!(exposed.split(", ").any(|name| name == header), "{exposed}");
    }
}

/// Asserts that no page may read the response.
#[track_caller]
fn assert_foreign(answer: &Answer) {
    let named = answer
        .headers
        .keys()
        .find(|name| name.as_str().starts_with("access-control-"));
    assert_eq!(named, None, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_origins_can_read_responses_of_app_routes() {
    let app = with_page().await;
    for (path, methods) in of_apps(&app) {
        let of_apps = !path.starts_with("/api/v1/admin") && !path.starts_with("/api/v1/providers");
        for method in methods {
            let method: Method = method.parse().unwrap();
            let answer = app
                .send_with(method.clone(), &path, &[("Origin", PAGE)], "")
                .await;
            if of_apps {
                assert_shared(&answer);
            } else {
                assert_foreign(&answer);
            }
            for origin in [
                "https://evil.example",
                "null",
                "https://app.example.com.evil.example",
            ] {
                assert_foreign(
                    &app.send_with(method.clone(), &path, &[("Origin", origin)], "")
                        .await,
                );
            }
        }
    }
    // Rocket and the fairings refuse these requests before any route.
    for (method, path) in [(Method::GET, "/api/v1/nothing"), (Method::PUT, REFRESH)] {
        assert_shared(&app.send_with(method, path, &[("Origin", PAGE)], "").await);
    }
    for path in ["/readyz", "/admin", "/problems", "/nothing"] {
        assert_foreign(
            &app.send_with(Method::GET, path, &[("Origin", PAGE)], "")
                .await,
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_pages_there_are_no_cookies_and_no_cors() {
    let app = App::start().await;
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .refresh_token();
    let pair = format!("vestibule={token}");
    assert_problem(
        &post(&app, REFRESH, Some(&pair), "{}").await,
        400,
        "invalid_request",
    );
    let bare = app
        .send_with(Method::POST, REFRESH, &[("Cookie", &*pair)], "")
        .await;
    assert_problem(&bare, 415, "unsupported_media_type");
    assert_problem(
        &post(&app, LOGOUT, Some(&pair), "").await,
        401,
        "invalid_access_token",
    );
    for (path, methods) in of_apps(&app) {
        for method in methods.into_iter().chain(["OPTIONS"]) {
            let headers = [&preflight(PAGE)[..], &[("Cookie", &*pair)]].concat();
            let answer = app
                .send_with(method.parse().unwrap(), &path, &headers, "")
                .await;
            assert_foreign(&answer);
            assert_kept(&answer);
            assert!(method != "OPTIONS" || answer.status == 405, "{path}");
        }
    }
    let body = json!({ "id_token": app.token(&claims("ada", "ada@example.com")) }).to_string();
    let signed_in = post(&app, SIGN_IN, Some(&pair), &body).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    assert_foreign(&signed_in);
    assert_eq!(
        app.refresh(&token).await.status,
        200,
        "the cookie was ignored"
    );
}
