//! The catalogue of errors and its pages.

use std::collections::BTreeSet;

use reqwest::Method;

use crate::support::app::{Answer, App};
use crate::support::problem::{assert_problem, catalogue};

/// Names and statuses that clients rely on; they must not change or disappear.
const PROMISED: [(u16, &str); 24] = [
    (400, "invalid_request"),
    (401, "invalid_token"),
    (401, "token_expired"),
    (401, "issuer_mismatch"),
    (401, "audience_mismatch"),
    (401, "nonce_mismatch"),
    (403, "user_disabled"),
    (403, "identity_suspended"),
    (403, "domain_not_allowed"),
    (403, "provider_disabled"),
    (403, "reauthentication_required"),
    (404, "provider_not_found"),
    (404, "user_not_found"),
    (404, "not_found"),
    (405, "method_not_allowed"),
    (409, "identity_conflict"),
    (409, "link_required"),
    (413, "payload_too_large"),
    (415, "unsupported_media_type"),
    (422, "email_not_verified"),
    (422, "email_missing"),
    (500, "internal_error"),
    (503, "provider_unavailable"),
    (503, "service_unavailable"),
];

/// Returns a page's text as displayed, with code between backticks.
fn unescaped(page: &Answer) -> String {
    let named = [
        ("<code>", "`"),
        ("</code>", "`"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#x2F;", "/"),
        ("&amp;", "&"),
    ];
    named
        .iter()
        .fold(page.text.clone(), |text, (entity, character)| {
            text.replace(entity, character)
        })
}

fn assert_html(page: &Answer) {
    assert_eq!(page.status, 200, "{}", page.text);
    assert_eq!(
        page.header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("X-Content-Type-Options"), Some("nosniff"));
}

#[test]
fn every_promised_error_is_in_the_catalogue_with_its_status() {
    let known: BTreeSet<_> = catalogue()
        .iter()
        .map(|entry| (entry.status, entry.error))
        .collect();
    let missing: Vec<_> = PROMISED
        .iter()
        .filter(|promised| !known.contains(promised))
        .collect();
    assert_eq!(missing, Vec::<&(u16, &str)>::new());
}

#[test]
fn every_error_has_a_unique_name_and_a_remedy() {
    let entries = catalogue();
    let names: BTreeSet<_> = entries.iter().map(|entry| entry.error).collect();
    let titles: BTreeSet<_> = entries.iter().map(|entry| entry.title).collect();
    assert_eq!((names.len(), titles.len()), (entries.len(), entries.len()));
    for entry in entries {
        let plain = entry
            .error
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(plain && !entry.error.is_empty(), "{}", entry.error);
        assert!((400..=599).contains(&entry.status), "{}", entry.error);
        for text in [entry.title, entry.cause, entry.remedy] {
            assert!(!text.trim().is_empty(), "{}", entry.error);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_has_a_page_that_explains_it() {
    let app = App::start().await;
    for entry in catalogue() {
        let page = app
            .send(Method::GET, &format!("/problems/{}", entry.error), None, "")
            .await;
        assert_html(&page);
        assert!(!page.text.contains('`'), "{}", page.text);
        let text = unescaped(&page);
        for part in [
            entry.error,
            entry.title,
            entry.cause,
            entry.remedy,
            &entry.status.to_string(),
        ] {
            assert!(text.contains(part), "{}: {part}", entry.error);
        }
        let others = catalogue()
            .into_iter()
            .filter(|other| other.error != entry.error);
        assert!(
            !others
                .map(|other| other.cause)
                .any(|cause| text.contains(cause)),
            "{}",
            entry.error
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_page_lists_every_error_and_links_to_its_page() {
    let app = App::start().await;
    let page = app.send(Method::GET, "/problems", None, "").await;
    assert_html(&page);
    let text = unescaped(&page);
    for entry in catalogue() {
        let link = format!("href=\"/problems/{}\"", entry.error);
        assert!(
            text.contains(&link) && text.contains(entry.title),
            "{}",
            entry.error
        );
    }
    // The index precedes the errors, sorted by status, and links each error on the page.
    let (index, _) = text.split_once("</nav>").expect("an index");
    let listed: Vec<_> = index
        .split("<li>")
        .skip(1)
        .map(|item| item.get(..3).unwrap())
        .collect();
    assert_eq!(listed.len(), catalogue().len());
    assert!(listed.is_sorted(), "{listed:?}");
    for entry in catalogue() {
        assert!(
            index.contains(&format!("href=\"#{}\"", entry.error)),
            "{}",
            entry.error
        );
        assert!(
            text.contains(&format!(" id=\"{}\">", entry.error)),
            "{}",
            entry.error
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_error_has_no_page() {
    let app = App::start().await;
    for path in [
        "/problems/unknown",
        "/problems/INVALID_TOKEN",
        "/problems/invalid_token%00",
        "/problems/%3Cscript%3E",
        "/problems/invalid_token/more",
    ] {
        let answer = app.send(Method::GET, path, None, "").await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        assert_problem(&answer, 404, "not_found");
        assert!(!answer.text.contains("script"), "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_are_only_read() {
    let app = App::start().await;
    for path in ["/problems", "/problems/invalid_token"] {
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            assert_problem(
                &app.send(method, path, None, "").await,
                405,
                "method_not_allowed",
            );
        }
        let head = app.send(Method::HEAD, path, None, "").await;
        assert_eq!(
            (head.status.as_u16(), head.text.as_str()),
            (200, ""),
            "{path}"
        );
    }
}
