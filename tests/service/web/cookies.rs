//! The service matches its cookies by their exact names, whatever other cookies are sent.

use crate::support::app::{Answer, App};
use crate::support::raw::Raw;
use crate::support::staff_app::{Browser, StaffApp};
use crate::support::token::claims;
use reqwest::Method;
use serde_json::json;
use vestibule::domain::staff::Role;

const PAGE: &str = "https://app.example.com";
const STAFF: &str = "__Host-vestibule-staff";
const BROWSER: &str = "__Host-vestibule-sign-in";

/// The result of reading a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Ours,
    Nothing,
    Refused,
}

/// The `Cookie` lines of requests, and the expected result. `N` is the cookie's name, `O` its right
/// value, `X` another valid value, and `E` the name with one character percent-encoded.
const CASES: [(&[u8], Read); 21] = [
    (b"Cookie: N=O\r\n", Read::Ours),
    (b"Cookie: N=O; E=X\r\n", Read::Ours),
    (b"Cookie: E=X; N=O\r\n", Read::Ours),
    (b"Cookie: E=O\r\n", Read::Nothing),
    // Rust's `trim` removes these characters around a name, and no browser does.
    (b"Cookie: N=O; \xc2\xa0N=X\r\n", Read::Ours),
    (b"Cookie: \xc2\xa0N=O\r\n", Read::Nothing),
    (b"Cookie: N\xc2\xa0=O\r\n", Read::Nothing),
    (b"Cookie: \xe2\x80\x83N=O\r\n", Read::Nothing),
    (b"Cookie: N =O\r\n", Read::Nothing),
    (b"Cookie: N=O; NN=X; xN=X; n=X\r\n", Read::Ours),
    (b"Cookie: N=O; N=X\r\n", Read::Refused),
    (b"Cookie: N=X; N=O\r\n", Read::Refused),
    (b"Cookie: N=O\r\nCookie: N=X\r\n", Read::Refused),
    // Cookies of other applications.
    (b"Cookie: N=O; name=Jos\xe9\r\n", Read::Ours),
    (b"Cookie: \xff=\xfe; N=O\r\n", Read::Ours),
    (b"Cookie: name=Jos\xc3\xa9; N=O; a=\"b;c\"\r\n", Read::Ours),
    (b"Cookie: name=Jos\xe9\r\nCookie: N=O\r\n", Read::Ours),
    (
        b"Cookie: _test=\xd1\x84\xd1\x8b\xd0\xb2\xd0\xb0; N=O\r\n",
        Read::Ours,
    ),
    (b"Cookie: a=[\"b\", {\"c\": 1}]; N=O\r\n", Read::Ours),
    (b"Cookie: ; ;=; a; N=O;\r\n", Read::Ours),
    (b"Cookie: a=1;N=O\r\n", Read::Ours),
];

/// Replaces the letters of a case.
fn filled(lines: &[u8], name: &str, ours: &str, other: &str) -> Vec<u8> {
    let encoded = format!("{}%{:02x}{}", &name[..2], name.as_bytes()[2], &name[3..]);
    let mut whole = Vec::new();
    let mut rest = lines;
    while let Some((&byte, after)) = rest.split_first() {
        if rest.starts_with(b"Cookie: ") {
            whole.extend(b"Cookie: ");
            rest = &rest[8..];
            continue;
        }
        match byte {
            b'N' => whole.extend(name.bytes()),
            b'n' if after.first() == Some(&b'=') => whole.extend(name.to_uppercase().bytes()),
            b'O' => whole.extend(ours.bytes()),
            b'X' => whole.extend(other.bytes()),
            b'E' => whole.extend(encoded.bytes()),
            byte => whole.push(byte),
        }
        rest = after;
    }
    whole
}

fn line(app: &str, lines: &[u8]) -> Vec<u8> {
    [app.as_bytes(), lines].concat()
}

/// Returns the refresh token in the cookie of a fresh sign-in.
async fn refresh_cookie(app: &App, subject: &str) -> String {
    let body = json!({ "id_token": app.token(&claims(subject, &format!("{subject}@example.com"))), "session": "cookie" });
    let headers = [("Origin", PAGE), ("Content-Type", "application/json")];
    let answer = app
        .send_with(
            Method::POST,
            "/api/v1/auth/oauth/idp",
            &headers,
            body.to_string(),
        )
        .await;
    let set = answer
        .header("Set-Cookie")
        .unwrap_or_else(|| panic!("{}", answer.text));
    set.split(';')
        .next()
        .unwrap()
        .split_once('=')
        .unwrap()
        .1
        .to_owned()
}

fn session_of(token: &str, answer: &Answer) -> bool {
    // Both tokens begin with the id of the session.
    let set = answer.header("Set-Cookie").unwrap();
    set.split_once('=').unwrap().1.starts_with(&token[..16])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pages_cookie_is_read_by_its_exact_name() {
    for (public_url, name) in [
        ("http://127.0.0.1:8000", "vestibule"),
        ("https://id.example.com", "__Host-vestibule"),
    ] {
        let app = App::start_with(|figment| {
            figment
                .merge(("web.origins", [PAGE]))
                .merge(("public_url", public_url))
        })
        .await;
        for (lines, read) in CASES {
            let ours = refresh_cookie(&app, "ada").await;
            let other = refresh_cookie(&app, "mallory").await;
            let lines = filled(lines, name, &ours, &other);
            let shown = String::from_utf8_lossy(&lines).into_owned();
            let head = format!(
                "POST /api/v1/auth/refresh HTTP/1.1\r\nOrigin: {PAGE}\r\nContent-Type: application/json\r\n"
            );
            let answer = Raw::ask(&app, line(&head, &lines), "").await;
            match read {
                Read::Ours => {
                    assert_eq!(answer.status, 200, "{shown}: {}", answer.text);
                    assert!(session_of(&ours, &answer), "{shown}");
                }
                Read::Nothing => {
                    assert_eq!(
                        answer.error(),
                        "invalid_refresh_token",
                        "{shown}: {}",
                        answer.text
                    );
                }
                Read::Refused => {
                    assert_eq!(answer.error(), "cookie_refused", "{shown}: {}", answer.text);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_of_a_page_goes_whatever_is_beside_it() {
    let app = App::start_with(|figment| figment.merge(("web.origins", [PAGE]))).await;
    let ours = refresh_cookie(&app, "ada").await;
    let head = format!(
        "POST /api/v1/auth/logout HTTP/1.1\r\nOrigin: {PAGE}\r\nContent-Type: application/json\r\n"
    );
    let cookie = [
        b"Cookie: name=Jos\xe9; vestibule=",
        ours.as_bytes(),
        b"\r\n",
    ]
    .concat();
    let answer = Raw::ask(&app, line(&head, &cookie), "").await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    let gone = answer.header("Set-Cookie").unwrap();
    assert!(
        gone.starts_with("vestibule=;") && gone.contains("Max-Age=0"),
        "{gone}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_of_staff_is_read_by_its_exact_name() {
    let staff_app = StaffApp::open().await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    staff_app.appoint("mallory@example.com", Role::Admin).await;
    let [ours, other] = ["ada@example.com", "mallory@example.com"].map(async |email| {
        let browser = staff_app.signed_in(email).await;
        browser.cookies[STAFF].clone()
    });
    let ours = ours.await;
    let other = other.await;
    for (lines, read) in CASES {
        let lines = filled(lines, STAFF, &ours, &other);
        let shown = String::from_utf8_lossy(&lines).into_owned();
        let answer = Raw::ask(
            &staff_app.app,
            line("GET /admin/staff HTTP/1.1\r\n", &lines),
            "",
        )
        .await;
        if read == Read::Ours {
            assert_eq!(answer.status, 200, "{shown}");
            assert!(
                answer.text.contains(&csrf_of(&staff_app, &ours).await),
                "{shown}: it is Ada's page"
            );
        } else {
            assert_eq!(answer.status, 303, "{shown}: {}", answer.text);
        }
    }
}

/// Returns the CSRF token in the forms of a session's pages.
async fn csrf_of(staff_app: &StaffApp, session: &str) -> String {
    let mut browser = Browser::new(&staff_app.app.url);
    browser.cookies.insert(STAFF.into(), session.into());
    browser.csrf().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_staff_sign_in_cookie_is_matched_by_exact_name() {
    let staff_app = StaffApp::open().await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    for (lines, read) in CASES {
        let mut browser = Browser::new(&staff_app.app.url);
        let authorize = browser.begin().await;
        let callback = browser.choose(&authorize, "ada@example.com").await;
        let mut attacker = Browser::new(&staff_app.app.url);
        attacker.begin().await;
        let lines = filled(
            lines,
            BROWSER,
            &browser.cookies[BROWSER],
            &attacker.cookies[BROWSER],
        );
        let shown = String::from_utf8_lossy(&lines).into_owned();
        let path = callback
            .strip_prefix(&staff_app.app.url)
            .unwrap_or(&callback);
        let answer = Raw::ask(
            &staff_app.app,
            line(&format!("GET {path} HTTP/1.1\r\n"), &lines),
            "",
        )
        .await;
        let expected = if read == Read::Ours { 303 } else { 400 };
        assert_eq!(answer.status, expected, "{shown}: {}", answer.text);
    }
}
