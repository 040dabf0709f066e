//! Subjects as directories write them, at every route that takes one.

use reqwest::Method;
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::App;
use crate::support::token::{at, claims};

const USERS: &str = "/api/v1/admin/users";

/// LDAP names, and subjects that differ only in a blank.
const SUBJECTS: [&str; 5] = [
    "uid=jdoe,ou=People, dc=example",
    "uid=jdoe,ou=People,dc=example",
    "CN=Doe\\, J,OU=Sales",
    "second ada",
    "ada ",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_with_blanks_is_the_same_identity_at_every_door() {
    let app = App::start().await;
    let key = app.api_key("backend", KeyRole::Admin).await;
    for (number, subject) in SUBJECTS.into_iter().enumerate() {
        let address = format!("user-{number}@example.com");
        let created = app.sign_in(&claims(subject, &address)).await;
        assert_eq!(
            (created.status.as_u16(), created.outcome().as_str()),
            (201, "created"),
            "{subject}"
        );
        assert_eq!(created.json()["identity"]["subject"], subject);
        let user = created.user_id();
        assert_eq!(
            app.sign_in(&claims(subject, &address)).await.user_id(),
            user,
            "{subject}"
        );

        let linked = app
            .link(
                &created.access_token(),
                "second",
                &at("second", subject, &address),
            )
            .await;
        assert!(linked.status.is_success(), "{subject}: {}", linked.text);
        let encoded: String = byte_serialize(subject.as_bytes()).collect();
        for provider in ["idp", "second"] {
            let found = app
                .get(
                    &key,
                    &format!("{USERS}?provider={provider}&subject={encoded}"),
                )
                .await
                .json();
            assert_eq!(found["users"][0]["id"], user.as_str(), "{subject}: {found}");
        }
        // The search trims blanks around its text.
        if subject.trim() == subject {
            let found = app.get(&key, &format!("{USERS}?q={encoded}")).await.json();
            assert_eq!(found["users"][0]["id"], user.as_str(), "{subject}: {found}");
        }
    }
    let new = json!({ "identities": [{ "provider": "idp", "subject": "cn=grace, dc=example" }] });
    let new = app.as_user(&key, Method::POST, USERS, Some(&new)).await;
    assert_eq!(new.status, 201, "{}", new.text);
    let grace = app
        .sign_in(&claims("cn=grace, dc=example", "grace@example.com"))
        .await;
    assert_eq!(grace.user_id(), new.json()["id"].as_str().unwrap());
    for blank in [" ", "   ", "a\tb"] {
        let body = json!({ "identities": [{ "provider": "idp", "subject": blank }] });
        let refused = app.as_user(&key, Method::POST, USERS, Some(&body)).await;
        assert_eq!(refused.status, 400, "{blank:?}: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_identity_is_remembered_by_provider_and_subject_exactly() {
    let app = App::start().await;
    let first = app.sign_in(&claims("second ada", "ada@example.com")).await;
    assert_eq!(
        app.delete(&first.access_token(), "/api/v1/me").await.status,
        204
    );
    // The deleted subject equals this provider and subject joined by a blank.
    let other: Value = at("second", "ada", "grace@example.com");
    let answer = app.sign_in_at("second", &other).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}
