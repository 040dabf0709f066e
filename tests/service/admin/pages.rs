//! Requirements for every admin page, checked on the list of all pages.

use rocket::http::Method;
use vestibule::domain::staff::Role;

use super::staff_app_with;
use crate::support::app::Answer;
use crate::support::pages::{self, Content};
use crate::support::people::People;
use crate::support::staff_app::StaffApp;

#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_its_listed_status_and_privacy_headers() {
    let staff_app = StaffApp::open().await;
    let people = People::arrive(&staff_app).await;
    let pages = pages::all(&staff_app, &people).await;
    let shown = |route: &str| {
        ["/admin", "/problems", "/providers"]
            .iter()
            .any(|shown| route.starts_with(shown))
    };
    let routes = staff_app
        .app
        .routes
        .iter()
        .filter(|(method, route)| *method == Method::Get && shown(route));
    let routes: Vec<_> = routes.map(|(_, route)| route).collect();
    assert!(routes.len() > 5, "{routes:?}");
    for route in routes {
        assert!(
            pages
                .iter()
                .any(|address| pages::covers(route, &address.path)),
            "{route} has no address in the list"
        );
    }
    for address in pages {
        let name = &address.name;
        let answer = address.open(&staff_app).await;
        assert_eq!(answer.status, address.status, "{name}: {}", answer.text);
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{name}"
        );
        if address.content == Content::Other {
            continue;
        }
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("text/html"),
            "{name}"
        );
        if address.path.starts_with("/admin") {
            assert_is_private(name, &answer);
            for markup in ["<b>", "<i>", "<script>alert", "{%"] {
                assert!(
                    !answer.text.contains(markup),
                    "{name} lets {markup} through: {}",
                    answer.text
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_waits_too_long_responds_503_with_retry_after() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let mut lock = staff_app.app.database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE staff_sessions IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let answer = browser.get("/admin/users").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("Retry-After")),
        (503, Some("1")),
        "{}",
        answer.text
    );
    assert_is_private("503", &answer);
    lock.rollback().await.unwrap();
    assert_eq!(browser.get("/admin/users").await.status, 200);
}

fn assert_is_private(name: &str, answer: &Answer) {
    let policy = answer.header("content-security-policy").unwrap_or_default();
    for directive in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "object-src 'none'",
    ] {
        assert!(policy.contains(directive), "{name}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{name}: {policy}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{name}");
    assert_eq!(
        answer.header("referrer-policy"),
        Some("same-origin"),
        "{name}"
    );
    assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{name}");
}
