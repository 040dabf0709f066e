//! The role that each route under `/admin` needs, checked for every role.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use super::EXPORTS;
use super::sign_in::SESSION;
use crate::support::pages::covers;
use crate::support::people::{ADMIN, People, SUPPORT};
use crate::support::staff_app::{Browser, StaffApp};

/// The least role that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Least {
    Anyone,
    Support,
    /// Role support with the right to export.
    Export,
    Admin,
}
use Least::{Admin, Anyone, Export, Support};

const EXPORTER: &str = "exporter@example.com";

/// All mounted routes. The two routes of changes occur once for each change.
const ROUTES: [(&str, &str, Least); 51] = [
    ("GET", "/admin/admin.css", Anyone),
    ("GET", "/admin/admin.js", Anyone),
    ("GET", "/admin/icon.svg", Anyone),
    ("GET", "/admin/icons.svg", Anyone),
    ("GET", "/admin/sign-in", Anyone),
    ("POST", "/admin/sign-in", Anyone),
    ("GET", "/admin/sign-in/callback", Anyone),
    ("POST", "/admin/sign-out", Support),
    ("GET", "/admin", Support),
    ("GET", "/admin/users", Support),
    ("GET", "/admin/users/<id>", Support),
    ("GET", "/admin/audit", Support),
    ("POST", "/admin/users.csv", Export),
    ("POST", "/admin/audit.csv", Export),
    ("GET", "/admin/deletions/<number>", Support),
    ("GET", "/admin/staff", Support),
    ("GET", "/admin/keys", Support),
    ("GET", "/admin/time-zone", Support),
    ("POST", "/admin/time-zone", Support),
    ("POST", "/admin/users/<id>/end-sessions", Support),
    ("GET", "/admin/users/<id>/data.json", Support),
    ("POST", "/admin/users/<id>/notes", Support),
    ("GET", "/admin/users/<id>/end-sessions", Support),
    ("GET", "/admin/users/<id>/sessions/<session>/end", Support),
    ("GET", "/admin/users/<id>/disable", Admin),
    ("GET", "/admin/users/<id>/enable", Admin),
    ("POST", "/admin/users/<id>/sessions/<session>/end", Support),
    ("POST", "/admin/users/<id>/disable", Admin),
    ("POST", "/admin/users/<id>/enable", Admin),
    ("GET", "/admin/users/<user>/merge", Admin),
    ("POST", "/admin/users/<user>/merge", Admin),
    ("GET", "/admin/users/<user>/delete", Admin),
    ("POST", "/admin/users/<user>/delete", Admin),
    (
        "GET",
        "/admin/users/<user>/identities/<identity>/move",
        Admin,
    ),
    (
        "POST",
        "/admin/users/<user>/identities/<identity>/move",
        Admin,
    ),
    (
        "GET",
        "/admin/users/<user>/identities/<identity>/unlink",
        Admin,
    ),
    (
        "POST",
        "/admin/users/<user>/identities/<identity>/unlink",
        Admin,
    ),
    (
        "POST",
        "/admin/users/<user>/identities/<identity>/release",
        Admin,
    ),
    ("POST", "/admin/staff", Admin),
    ("POST", "/admin/staff/remove", Admin),
    ("GET", "/admin/staff/give", Admin),
    ("GET", "/admin/staff/remove", Admin),
    ("POST", "/admin/keys", Admin),
    ("POST", "/admin/keys/revoke", Admin),
    ("GET", "/admin/keys/add", Admin),
    ("GET", "/admin/keys/revoke", Admin),
    ("GET", "/admin/webhooks", Admin),
    ("GET", "/admin/webhooks/<name>", Admin),
    ("GET", "/admin/webhooks/<name>/replay", Admin),
    ("POST", "/admin/webhooks/<name>/test", Admin),
    ("POST", "/admin/webhooks/<name>/replay", Admin),
];

/// Returns everything that an action could change, without the columns that a member's sign-in
/// writes.
async fn state(staff_app: &StaffApp) -> String {
    let views = [
        "staff_signed_in",
        "user_viewed",
        "users_viewed",
        "audit_viewed",
    ];
    let staff = "SELECT string_agg(concat(email, role, may_export, ends_at, time_zone), ' ' ORDER BY email) FROM staff";
    staff_app.app.database.everything(&views).await
        + &staff_app.app.database.value::<String>(staff).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_in_whom_its_row_names_and_nobody_else() {
    let staff_app = StaffApp::open().await;
    let people = People::arrive(&staff_app).await;
    staff_app.appoint(EXPORTER, EXPORTS).await;
    let mounted: BTreeSet<_> = staff_app
        .app
        .routes
        .iter()
        .filter(|(_, path)| path.starts_with("/admin"))
        .map(|(method, path)| (method.as_str(), path.as_str()))
        .collect();
    let covered =
        |route: &str, path: &str| route == path || route.ends_with("..>") && covers(route, path);
    for (method, route) in &mounted {
        assert!(
            ROUTES
                .iter()
                .any(|(verb, path, _)| verb == method && covered(route, path)),
            "{method} {route}"
        );
    }
    for (method, path, _) in ROUTES {
        assert!(
            mounted
                .iter()
                .any(|(verb, route)| *verb == method && covered(route, path)),
            "{method} {path}"
        );
    }

    let identity: uuid::Uuid = value!(
        &staff_app.app.database.pool,
        "SELECT id FROM identities WHERE user_id = $1::text::uuid LIMIT 1",
        &people.ada
    );
    let minted = reqwest::get(format!(
        "{}/dev/idp/mint?email=ada.lovelace@example.com",
        staff_app.app.url
    ))
    .await;
    let token = minted.unwrap().text().await.unwrap();
    let user = staff_app
        .app
        .post("idp", &json!({ "id_token": token.trim() }))
        .await;

    run!(
        &staff_app.app.database.pool,
        "UPDATE identities SET held_at = now() WHERE id = $1",
        identity
    );
    let before = state(&staff_app).await;
    for (viewer, email) in [
        (Anyone, ""),
        (Support, SUPPORT),
        (Export, EXPORTER),
        (Admin, ADMIN),
    ] {
        let mut browser = Browser::new(&staff_app.app.url);
        for (method, route, least) in ROUTES {
            let path = route
                .replace("<id>", &people.ada)
                .replace("<user>", &people.ada)
                .replace("<number>", &people.deletion)
                .replace("<name>", "shop")
                .replace("<identity>", &identity.to_string())
                .replace("<session>", &identity.to_string());
            // Signs in at the first request, and again after the sign-out.
            if viewer != Anyone && !browser.cookies.contains_key(SESSION) {
                browser = staff_app.signed_in(email).await;
            }
            let method: Method = method.parse().unwrap();
            let mut request = browser.request(method.clone(), &path);
            if method == Method::POST {
                // The form has only the CSRF token: a permitted request then fails for its missing
                // fields.
                let csrf = if viewer == Anyone {
                    "x".to_owned()
                } else {
                    browser.csrf().await
                };
                request = browser
                    .request(method.clone(), &path)
                    .form(&[("csrf", csrf)]);
            }
            // A user's access token gives no access to admin pages.
            let answer = browser.send(request.bearer_auth(user.access_token())).await;
            let status = answer.status.as_u16();
            let what = format!("{viewer:?}: {method} {route}");
            let to_sign_in = answer
                .header("location")
                .is_some_and(|to| to.starts_with("/admin/sign-in?"));
            if viewer == Anyone && least != Anyone {
                assert!(
                    status == 303 && to_sign_in && answer.text.is_empty(),
                    "{what}: {status}"
                );
            } else if viewer < least {
                assert_eq!(status, 403, "{what}");
                assert!(!answer.text.contains("ada.lovelace"), "{what}");
            } else {
                assert!(
                    ![401, 403, 404, 500].contains(&status) && !to_sign_in,
                    "{what}: {status}"
                );
            }
        }
    }
    assert_eq!(
        state(&staff_app).await,
        before,
        "nothing was done without a reason"
    );

    // Conversely, a staff cookie gives no access to the API.
    let mut browser = staff_app.signed_in(ADMIN).await;
    for path in ["/api/v1/me", "/api/v1/me/identities", "/api/v1/me/sessions"] {
        assert_eq!(browser.get(path).await.status, 401, "{path}");
    }
}
