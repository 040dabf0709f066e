//! The role that each route under `/api/v1/admin` needs, checked with every kind of credential.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;

use crate::support::app::App;
use crate::support::people::sign_in;
use crate::support::problem::assert_problem;
use crate::support::staff_app::StaffApp;

/// All mounted routes, and the least role of their keys.
const ROUTES: [(&str, &str, KeyRole); 18] = [
    ("GET", "/api/v1/admin/users", KeyRole::Reader),
    ("GET", "/api/v1/admin/users/<id>", KeyRole::Reader),
    ("GET", "/api/v1/admin/users/<id>/sessions", KeyRole::Reader),
    ("GET", "/api/v1/admin/users/<id>/events", KeyRole::Reader),
    ("GET", "/api/v1/admin/events", KeyRole::Reader),
    ("POST", "/api/v1/admin/users", KeyRole::Admin),
    (
        "POST",
        "/api/v1/admin/users/<id>/end-sessions",
        KeyRole::Support,
    ),
    (
        "POST",
        "/api/v1/admin/users/<id>/end-session",
        KeyRole::Support,
    ),
    ("POST", "/api/v1/admin/users/<id>/disable", KeyRole::Admin),
    ("POST", "/api/v1/admin/users/<id>/enable", KeyRole::Admin),
    ("POST", "/api/v1/admin/users/<id>/unlink", KeyRole::Admin),
    ("POST", "/api/v1/admin/users/<id>/release", KeyRole::Admin),
    ("POST", "/api/v1/admin/users/<id>/move", KeyRole::Admin),
    ("POST", "/api/v1/admin/users/<id>/merge", KeyRole::Admin),
    ("POST", "/api/v1/admin/users/<id>/delete", KeyRole::Admin),
    ("PUT", "/api/v1/admin/users/<id>/claims", KeyRole::Admin),
    (
        "POST",
        "/api/v1/admin/webhooks/<name>/replay",
        KeyRole::Admin,
    ),
    ("POST", "/api/v1/admin/webhooks/<name>/test", KeyRole::Admin),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_admin_route_admits_exactly_the_keys_of_its_row() {
    let staff_app = StaffApp::open().await;
    let app = &staff_app.app;
    let mounted: BTreeSet<_> = app
        .routes
        .iter()
        .filter(|(_, path)| path.starts_with("/api/v1/admin"))
        .map(|(method, path)| (method.as_str(), path.as_str()))
        .collect();
    assert_eq!(
        mounted,
        ROUTES
            .iter()
            .map(|(method, path, _)| (*method, *path))
            .collect()
    );

    staff_app.appoint("staff@example.com", Role::Admin).await;
    let mut browser = staff_app.signed_in("staff@example.com").await;
    let ada = sign_in(&staff_app, &[("email", "ada@example.com")]).await;
    let keys = [
        (
            KeyRole::Reader,
            app.api_key("reader", KeyRole::Reader).await,
        ),
        (
            KeyRole::Support,
            app.api_key("support", KeyRole::Support).await,
        ),
        (KeyRole::Admin, app.api_key("admin", KeyRole::Admin).await),
    ];
    let before = app.database.everything(&[]).await;
    for (method, route, least) in ROUTES {
        let path = route.replace("<id>", &ada.user_id());
        let method: Method = method.parse().unwrap();
        let body = json!({});
        for (role, key) in &keys {
            let answer = app.as_user(key, method.clone(), &path, Some(&body)).await;
            if *role < least {
                assert_problem(&answer, 403, "insufficient_role");
                assert!(!answer.text.contains("ada@example.com"), "{}", answer.text);
                let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                assert!(
                    detail.contains(&format!("`{least}`")),
                    "{method} {route}: {detail}"
                );
            } else {
                // The body is empty: a permitted request then fails for its missing members.
                let expected = match method {
                    Method::GET => 200,
                    // The route needs no body, and this webhook does not exist.
                    _ if path.ends_with("/test") => 404,
                    _ => 400,
                };
                assert_eq!(
                    answer.status, expected,
                    "{role}: {method} {route}: {}",
                    answer.text
                );
            }
        }
        let a_users = app
            .as_user(&ada.access_token(), method.clone(), &path, Some(&body))
            .await;
        assert_problem(&a_users, 401, "invalid_api_key");
        let request = browser
            .request(method.clone(), &path)
            .header("Content-Type", "application/json");
        assert_problem(
            &App::answer(request.body("{}").send().await.unwrap()).await,
            401,
            "invalid_api_key",
        );
    }
    assert_eq!(
        app.database.everything(&[]).await,
        before,
        "nothing was done without a reason"
    );

    // Conversely, a key opens no page.
    for (_, key) in &keys {
        for path in ["/admin", "/admin/users", "/admin/staff"] {
            let answer = browser_without_cookies(&mut browser, path, key).await;
            assert_eq!(answer, 303, "{path}");
        }
    }
}

async fn browser_without_cookies(
    browser: &mut crate::support::staff_app::Browser,
    path: &str,
    key: &str,
) -> u16 {
    browser.cookies.clear();
    let request = browser.request(Method::GET, path).bearer_auth(key);
    browser.send(request).await.status.as_u16()
}
