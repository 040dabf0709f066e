//! Users whom a backend creates before they sign in.

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::domain::api_key::KeyRole;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{claims, with};

const PATH: &str = "/api/v1/admin/users";

async fn create(app: &App, key: &str, body: &Value) -> Answer {
    app.as_user(key, Method::POST, PATH, Some(body)).await
}

async fn created(app: &App, key: &str, body: &Value) -> String {
    let answer = create(app, key, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proven_owner_of_an_address_becomes_its_created_user() {
    let app = App::start().await;
    let key = app.api_key("admin", KeyRole::Admin).await;
    let ada = json!({
        "email": "Ada@Example.com", "email_verified": true, "name": " Ada ", "claims": { "roles": ["editor"] },
    });
    let ada = create(&app, &key, &ada).await;
    assert_eq!(ada.status, 201, "{}", ada.text);
    let user = ada.json();
    assert_eq!(
        (&user["email"], &user["name"]),
        (&json!("ada@example.com"), &json!("Ada"))
    );
    assert_eq!(
        (&user["claims"], &user["last_seen_on"]),
        (&json!({ "roles": ["editor"] }), &Value::Null)
    );
    let id = user["id"].as_str().unwrap();
    assert_eq!(
        app.get(&key, &format!("{PATH}/{id}")).await.json(),
        user,
        "it reads what it has written"
    );

    // An unverified address goes to the owner who proves it, together with its waiting user.
    let grace = created(&app, &key, &json!({ "email": "grace@example.com" })).await;
    for (subject, address, expected) in [
        ("1", "ada@example.com", id),
        ("2", "grace@example.com", &grace),
    ] {
        let first = app.sign_in(&claims(subject, address)).await;
        assert_eq!(
            (first.outcome().as_str(), first.user_id().as_str()),
            ("linked", expected)
        );
        let next = app.sign_in(&claims(subject, address)).await;
        assert_eq!(
            (next.outcome().as_str(), next.user_id().as_str()),
            ("signed_in", expected)
        );
    }
    let mut unverified = claims("3", "ada@example.com");
    unverified["email_verified"] = json!("false");
    assert_eq!(app.sign_in(&unverified).await.error(), "link_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_created_with_identities_signs_in_with_them() {
    let app = App::start().await;
    let key = app.api_key("admin", KeyRole::Admin).await;
    let body = json!({
        "email": "ada@example.com", "email_verified": true,
        "identities": [
            { "provider": "idp", "subject": "ada" },
            { "provider": "second", "subject": "ada-2", "email": "a@example.com", "email_verified": false },
        ],
    });
    let id = created(&app, &key, &body).await;
    let user = app.get(&key, &format!("{PATH}/{id}")).await.json();
    let addresses: Vec<_> = user["identities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["email"])
        .collect();
    assert_eq!(addresses, ["ada@example.com", "a@example.com"]);
    let first = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(
        (first.outcome(), first.user_id()),
        ("signed_in".into(), id.clone())
    );
    let second = with(
        claims("ada-2", "a@example.com"),
        &json!({ "iss": "https://second.example" }),
    );
    assert_eq!(app.sign_in_at("second", &second).await.user_id(), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_user_has_is_not_given_away() {
    let app = App::start().await;
    let key = app.api_key("admin", KeyRole::Admin).await;
    app.sign_in(&claims("ada", "ada@example.com")).await;
    let before = app.database.rows().await;
    for (body, error) in [
        (json!({ "email": "ADA@example.com" }), "email_taken"),
        (
            json!({ "identities": [{ "provider": "idp", "subject": "ada" }] }),
            "identity_taken",
        ),
        (
            json!({ "email": "new@example.com", "identities": [
                { "provider": "idp", "subject": "new" }, { "provider": "idp", "subject": "ada" },
            ] }),
            "identity_taken",
        ),
    ] {
        assert_problem(&create(&app, &key, &body).await, 409, error);
    }
    assert_eq!(app.database.rows().await, before, "nothing was written");
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events WHERE actor LIKE 'key:%'")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backends_verified_user_takes_an_address_from_an_unverified_one() {
    let app = App::start().await;
    let key = app.api_key("admin", KeyRole::Admin).await;
    let unverified = with(
        claims("squatter", "ada@example.com"),
        &json!({ "email_verified": "false" }),
    );
    let squatter = app.sign_in(&unverified).await;
    let taken = create(&app, &key, &json!({ "email": "ada@example.com" })).await;
    assert_problem(&taken, 409, "email_taken");
    let id = created(
        &app,
        &key,
        &json!({ "email": "ada@example.com", "email_verified": true }),
    )
    .await;
    let bereft = app.get(&squatter.access_token(), "/api/v1/me").await.json();
    assert_eq!(
        (&bereft["id"], &bereft["email"]),
        (&json!(squatter.user_id()), &json!(null))
    );
    let told: (String, String) = app
        .database
        .row("SELECT user_id::text, detail->>'to' FROM events WHERE kind = 'email_lost'")
        .await;
    assert_eq!(told, (squatter.user_id(), id.clone()));
    assert_eq!(
        app.sign_in(&claims("ada", "ada@example.com"))
            .await
            .user_id(),
        id
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_creations_of_one_user_exactly_one_succeeds() {
    let app = App::start().await;
    let key = app.api_key("admin", KeyRole::Admin).await;
    for round in 0..10 {
        let address = json!({ "email": format!("ada-{round}@example.com") });
        let identity =
            json!({ "identities": [{ "provider": "idp", "subject": format!("{round}") }] });
        for body in [address, identity] {
            let answers =
                rocket::futures::future::join_all((0..8).map(|_| create(&app, &key, &body))).await;
            let statuses: Vec<_> = answers
                .iter()
                .map(|answer| answer.status.as_u16())
                .collect();
            assert_eq!(
                statuses.iter().filter(|status| **status == 201).count(),
                1,
                "{statuses:?}"
            );
            assert_eq!(
                statuses.iter().filter(|status| **status == 409).count(),
                7,
                "{statuses:?}"
            );
        }
    }
    let events = "SELECT count(*) FROM events WHERE kind = 'user_created' AND actor = 'key:admin'";
    assert_eq!(app.database.count(events).await, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_user_is_rejected_with_the_member_named() {
    let app = App::start().await;
    let key = app.api_key("admin", KeyRole::Admin).await;
    let identity = |changes: Value| {
        let identity = with(json!({ "provider": "idp", "subject": "ada" }), &changes);
        json!({ "identities": [identity] })
    };
    let same = json!({ "provider": "idp", "subject": "ada" });
    for (body, detail) in [
        (json!({}), "a user needs an `email` or an identity"),
        (
            json!({ "name": "Ada" }),
            "a user needs an `email` or an identity",
        ),
        (
            json!({ "e-mail": "ada@example.com" }),
            "the body has an unknown member",
        ),
        (
            json!({ "email": "Ada <ada@example.com>" }),
            "`email` must be exactly one e-mail address",
        ),
        (
            with(identity(json!({})), &json!({ "email_verified": true })),
            "`email_verified` must not be true without an `email`",
        ),
        (
            json!({ "email": "a@example.com", "picture": "http://x.example" }),
            "`picture` must be an `https` URL",
        ),
        (
            json!({ "email": "a@example.com", "claims": { "sub": "x" } }),
            "the claim `sub` is reserved",
        ),
        (
            json!({ "email": "a@example.com", "claims": [] }),
            "the claims must be one JSON object",
        ),
        (
            json!({ "identities": {} }),
            "`identities` must be an array of at most 20",
        ),
        (
            json!({ "identities": vec![&same; 21] }),
            "`identities` must be an array of at most 20",
        ),
        (
            json!({ "identities": [same, same] }),
            "`identities[1]` is there twice",
        ),
        (
            json!({ "identities": ["idp"] }),
            "`identities[0]` must be an object",
        ),
        (
            identity(json!({ "provider": null })),
            "`identities[0].provider` is missing",
        ),
        (
            identity(json!({ "provider": "other" })),
            "must be the name of a configured provider",
        ),
        (
            identity(json!({ "sub": "ada" })),
            "an identity has an unknown member",
        ),
        (
            identity(json!({ "email": "ada" })),
            "`identities[0].email` must be exactly one",
        ),
        (
            identity(json!({ "email_verified": true })),
            "`identities[0].email_verified` must not be true",
        ),
    ] {
        let answer = create(&app, &key, &body).await;
        assert_problem(&answer, 400, "invalid_request");
        assert!(
            answer.json()["detail"].as_str().unwrap().contains(detail),
            "{body}: {}",
            answer.text
        );
    }
    assert_eq!(app.database.rows().await, [0, 0, 0]);
}
