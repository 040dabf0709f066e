//! API keys on the staff page and in the audit.

use reqwest::Method;
use serde_json::json;
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;

use super::{EXPORTS, file, person, staff_app_with};
use crate::support::staff_app::Browser;

async fn post(browser: &mut Browser, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
    let answer = browser
        .submit(path, &[&[("reason", "a new backend")], fields].concat())
        .await;
    (answer.status.as_u16(), answer.text)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_adds_a_key_sees_it_once_and_revokes_it() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let fields = [
        ("name", "shop-backend"),
        ("role", "support"),
        ("until", "2099-12-31"),
    ];
    let (status, page) = post(&mut browser, "/admin/keys", &fields).await;
    assert_eq!(status, 200, "{page}");
    let key = page
        .split("data-copy>vst_")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    let key = format!("vst_{key}");
    let ada = person(&staff_app, &[("email", "ada@example.com")])
        .await
        .user_id();
    let path = format!("/api/v1/admin/users/{ada}/end-sessions");
    let body = json!({ "reason": "lost phone" });
    assert_eq!(
        staff_app
            .app
            .as_user(&key, Method::POST, &path, Some(&body))
            .await
            .status,
        200
    );

    let listed = browser.get("/admin/keys").await.text;
    assert!(
        listed.contains("shop-backend") && !listed.contains(&key),
        "{listed}"
    );
    let row = listed
        .split("<tbody>")
        .nth(1)
        .unwrap()
        .split("</table>")
        .next()
        .unwrap();
    assert!(
        row.contains("support")
            && row.contains("2099-12-31 (UTC)")
            && row.contains("staff@example.com"),
        "{row}"
    );
    assert!(!row.contains("never"), "it was used, and has an end: {row}");

    for (fields, expected) in [
        (&fields[..], 200),
        (&[("name", "Shop"), ("role", "reader")], 400),
        (&[("name", "other"), ("role", "root")], 400),
        (
            &[
                ("name", "other"),
                ("role", "reader"),
                ("until", "2020-01-01"),
            ],
            400,
        ),
        (&[("name", "other"), ("role", "reader")], 200),
    ] {
        let (status, page) = post(&mut browser, "/admin/keys", fields).await;
        assert_eq!(status, expected, "{fields:?}: {page}");
    }
    let (_, page) = post(&mut browser, "/admin/keys", &fields).await;
    assert!(
        page.contains("it was shown once") && !page.contains("vst_"),
        "a reload: {page}"
    );
    staff_app
        .app
        .database
        .run("UPDATE api_keys SET created_at = now() - interval '2 hours'")
        .await;
    let (status, page) = post(&mut browser, "/admin/keys", &fields).await;
    assert!(
        status == 400 && page.contains("There is an API key with this name."),
        "{page}"
    );
    let question = browser
        .get("/admin/keys/add?name=shop-2&role=reader&for=none")
        .await
        .text;
    assert!(
        question.contains("can read users.") && question.contains("The key has no end."),
        "{question}"
    );
    let question = browser
        .get("/admin/keys/revoke?name=shop-backend")
        .await
        .text;
    assert!(
        question.contains("Revoke the API key shop-backend"),
        "{question}"
    );
    let revoke = [("name", "shop-backend")];
    assert_eq!(
        post(&mut browser, "/admin/keys/revoke", &revoke).await.0,
        303
    );
    assert_eq!(
        staff_app
            .app
            .as_user(&key, Method::POST, &path, Some(&body))
            .await
            .error(),
        "invalid_api_key"
    );
    assert_eq!(
        post(&mut browser, "/admin/keys/revoke", &revoke).await.0,
        409
    );

    let recorded: Vec<(String, String, serde_json::Value)> = staff_app.app.database.all("SELECT kind, actor, detail FROM events WHERE kind LIKE 'api_key_%' AND detail->>'key' = 'shop-backend' ORDER BY id").await;
    let [added, revoked] = &recorded[..] else {
        panic!("{recorded:?}")
    };
    assert_eq!(
        (added.0.as_str(), added.1.as_str()),
        ("api_key_added", "staff@example.com")
    );
    assert_eq!(
        (&added.2["role"], &added.2["reason"]),
        (&json!("support"), &json!("a new backend"))
    );
    assert_eq!(
        (revoked.0.as_str(), revoked.1.as_str()),
        ("api_key_revoked", "staff@example.com")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_lists_and_filters_changes_by_an_api_key() {
    let (staff_app, mut browser) = staff_app_with(EXPORTS).await;
    let key = staff_app.app.api_key("shop-backend", KeyRole::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")])
        .await
        .user_id();
    let change = async |change: &str| {
        let path = format!("/api/v1/admin/users/{ada}/{change}");
        let body = json!({ "reason": "ticket 4711" });
        assert_eq!(
            staff_app
                .app
                .as_user(&key, Method::POST, &path, Some(&body))
                .await
                .status,
            200,
            "{change}"
        );
    };
    for name in ["disable", "enable"] {
        change(name).await;
    }
    person(&staff_app, &[("email", "ada@example.com")]).await;
    change("end-sessions").await;
    let path = format!("/api/v1/admin/users/{ada}/claims");
    let body = json!({ "claims": { "plan": "pro" }, "reason": "ticket 4711" });
    assert_eq!(
        staff_app
            .app
            .as_user(&key, Method::PUT, &path, Some(&body))
            .await
            .status,
        200
    );
    change("delete").await;
    let body = json!({ "email": "grace@example.com" });
    let created = staff_app
        .app
        .as_user(&key, Method::POST, "/api/v1/admin/users", Some(&body))
        .await;
    assert_eq!(created.status, 201, "{}", created.text);

    let page = browser
        .get("/admin/audit?actor=key%3Ashop-backend")
        .await
        .text;
    for told in [
        "Disabled by an API key",
        "Enabled by an API key",
        "Signed out everywhere by an API key",
        "Deleted by an API key",
        "Created before the first sign-in",
        "key:shop-backend",
        "ticket 4711",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert!(
        !page.contains("ed by staff") && !page.contains("everywhere by staff"),
        "{page}"
    );
    let staff = browser.get("/admin/audit?what=staff").await.text;
    assert!(
        staff.contains("Added an API key") && staff.contains("Deleted by an API key"),
        "{staff}"
    );
    for nothing in [
        "key%3Aother",
        "key%3A",
        "shop-backend",
        "key%3Ashop-backend%40example.com",
    ] {
        let page = browser
            .get(&format!("/admin/audit?actor={nothing}"))
            .await
            .text;
        assert!(page.contains("No event matches"), "{nothing}: {page}");
    }
    let request = file(&mut browser, "/admin/audit.csv?actor=key%3Ashop-backend").await;
    let csv = browser.send(request).await.text;
    assert_eq!(
        csv.lines()
            .filter(|line| line.contains("key:shop-backend"))
            .count(),
        6,
        "{csv}"
    );
    let receipt = csv
        .lines()
        .find(|line| line.contains("user_deleted"))
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let receipt = browser
        .get(&format!("/admin/deletions/{}", receipt.trim_matches('"')))
        .await
        .text;
    assert!(receipt.contains("key:shop-backend"), "{receipt}");
}
