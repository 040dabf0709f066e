//! The members of a request beside its token.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::token::{at, claims, encode};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_may_be_sent_again_and_finds_the_same_user() {
    let app = App::start().await;
    let request = json!({ "id_token": app.token(&claims("subject-1", "ada@example.com")) });
    let first = app.post("idp", &request).await;
    let second = app.post("idp", &request).await;
    assert_eq!(
        (first.status.as_u16(), second.status.as_u16()),
        (201, 200),
        "{}",
        second.text
    );
    assert_eq!(first.user_id(), second.user_id());
    assert_ne!(
        first.json()["refresh_token"],
        second.json()["refresh_token"]
    );
    // The service calls the provider each time: it does not remember that a token was valid.
    assert_eq!(app.provider.calls(), 2);
    app.provider.revoke(request["id_token"].as_str().unwrap());
    assert_problem(&app.post("idp", &request).await, 401, "invalid_token");
    assert_eq!(app.database.rows().await, [1, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_create_false_only_known_identities_sign_in() {
    let app = App::start().await;
    let request = |subject: &str, email: &str, create: Value| json!({ "id_token": app.token(&claims(subject, email)), "create": create });
    let unknown = app
        .post(
            "idp",
            &request("subject-1", "ada@example.com", json!(false)),
        )
        .await;
    assert_problem(&unknown, 404, "user_not_found");
    assert_eq!(app.database.rows().await, [0, 0, 0]);

    let created = app
        .post("idp", &request("subject-1", "ada@example.com", json!(true)))
        .await;
    assert_eq!(created.outcome(), "created");
    let known = app
        .post(
            "idp",
            &request("subject-1", "ada@example.com", json!(false)),
        )
        .await;
    assert_eq!(
        (known.status.as_u16(), known.user_id()),
        (200, created.user_id())
    );

    // Linking counts as creation, too, and the response must not reveal the user with the address.
    let rows = app.database.rows().await;
    let linkable = app
        .post(
            "idp",
            &request("subject-2", "ada@example.com", json!(false)),
        )
        .await;
    assert_problem(&linkable, 404, "user_not_found");
    assert_eq!(linkable.json()["detail"], unknown.json()["detail"]);
    assert_eq!(app.database.rows().await, rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_kept_with_the_session_without_its_control_characters() {
    let app = App::start().await;
    let longest = "ü".repeat(100);
    for (device, expected) in [
        (
            json!({ "name": "Ada's phone", "platform": "android" }),
            (Some("Ada's phone"), Some("android")),
        ),
        (
            json!({ "name": longest, "platform": null }),
            (Some(longest.as_str()), None),
        ),
        (
            json!({ "platform": "i\0O\n\u{202e}S", "serial": "unknown members are ignored" }),
            (None, Some("iOS")),
        ),
        (json!({}), (None, None)),
        (Value::Null, (None, None)),
    ] {
        let token = app.token(&claims("subject-1", "ada@example.com"));
        let answer = app
            .post("idp", &json!({ "id_token": token, "device": device }))
            .await;
        assert!(answer.status.is_success(), "{device} {}", answer.text);
        let kept: (Option<String>, Option<String>) = app
            .database
            .row("SELECT device_name, device_platform FROM sessions ORDER BY created_at DESC LIMIT 1")
            .await;
        assert_eq!((kept.0.as_deref(), kept.1.as_deref()), expected, "{device}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_ignored_and_never_stored() {
    const PLANTED: &str = "planted";
    let app = App::start().await;
    let answer = app
        .post(
            "idp",
            &json!({
                "id_token": app.token(&claims("subject-1", "ada@example.com")),
                "email": "planted@example.com", "sub": PLANTED, "user_id": "00000000-0000-0000-0000-000000000000",
                "role": PLANTED, "email_verified": false, "created_at": "1970-01-01T00:00:00Z", "name": PLANTED,
                "access_token": PLANTED, "provider": PLANTED, "user": { "name": PLANTED }, "": PLANTED,
            }),
        )
        .await;
    assert_eq!(answer.outcome(), "created", "{}", answer.text);
    assert_eq!(answer.json()["user"]["email"], "ada@example.com");
    assert_eq!(answer.json()["user"]["email_verified"], true);
    assert_eq!(answer.json()["identity"]["subject"], "subject-1");
    let stored: Vec<String> = app
        .database
        .values(
            "SELECT to_jsonb(u)::text FROM users u UNION ALL SELECT to_jsonb(i)::text FROM identities i
         UNION ALL SELECT to_jsonb(s)::text FROM sessions s UNION ALL SELECT to_jsonb(e)::text FROM events e",
        )
        .await;
    assert_eq!(stored.len(), 4);
    for row in stored {
        assert!(
            !row.contains(PLANTED) && !row.contains("1970-01-01"),
            "{row}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_token_format_any_the_provider_receives_the_token_unchanged() {
    let app = App::start_with(|figment| figment.merge(("idp.token_format", "any"))).await;
    for (number, token) in [
        "opaque".to_owned(),
        "a.b".to_owned(),
        "....".to_owned(),
        "e30.bm90IGpzb24.c2ln".to_owned(),
        "a+b/c==&id_token=other#fragment?%41%00".to_owned(),
        "{\"id_token\":\"x\"}".to_owned(),
        "t".repeat(7900),
    ]
    .into_iter()
    .enumerate()
    {
        app.provider
            .accept(&token, claims(&format!("subject-{number}"), ""));
        let answer = app.post("idp", &json!({ "id_token": token })).await;
        assert_eq!(answer.outcome(), "created", "{token:.40} {}", answer.text);
        assert_eq!(app.provider.requests().last().unwrap().token(), Some(token));
    }
    // Tokens that are too long for a query, also when only their encoding is.
    for token in ["t".repeat(16_384), "+".repeat(2700)] {
        app.provider
            .accept(&token, claims(&format!("subject-{}", token.len()), ""));
        let answer = app.post("idp", &json!({ "id_token": token })).await;
        assert_eq!(answer.outcome(), "created", "{}", answer.text);
        let request = app.provider.requests().pop().unwrap();
        assert_eq!(
            (
                request.method.as_str(),
                request.query.as_str(),
                request.token()
            ),
            ("POST", "", Some(token))
        );
    }
    let calls = app.provider.calls();
    let answer = app
        .post("idp", &json!({ "id_token": "t".repeat(16_385) }))
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.error().as_str()),
        (400, "invalid_request")
    );
    assert_eq!(app.provider.calls(), calls);
}

/// Adds two hundred groups to the claims, so that the token is long.
fn in_groups(mut claims: Value) -> Value {
    let group = |number: usize| format!("{number:08x}-b07e-4a9c-8e5f-5f4c2b1d0c{number:03x}");
    claims["groups"] = (0..200).map(group).collect();
    claims
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_two_hundred_groups_is_accepted_at_every_door() {
    let app = App::start().await;
    let token = |claims: &Value| {
        let token = encode(r#"{"alg":"RS256"}"#, &claims.to_string());
        assert!((10_000..16_384).contains(&token.len()), "{}", token.len());
        app.provider.accept(&token, claims.clone());
        token
    };
    let at = |provider: &str, subject: &str| {
        in_groups(at(provider, subject, &format!("{subject}@example.com")))
    };
    let ada = in_groups(claims("ada", "ada@example.com"));
    let signed_in = app.post("idp", &json!({ "id_token": token(&ada) })).await;
    assert_eq!(signed_in.outcome(), "created", "{}", signed_in.text);
    app.post(
        "second",
        &json!({ "id_token": token(&at("second", "grace")) }),
    )
    .await;
    app.age(3600.0).await;
    let ask = async |method, path: &str, mut body: Value| {
        body["reauthentication"] = json!({ "provider": "idp", "id_token": token(&ada) });
        app.as_user(&signed_in.access_token(), method, path, Some(&body))
            .await
    };
    let link = json!({ "id_token": token(&at("third", "ada-3")) });
    let linked = ask(Method::POST, "/api/v1/me/identities/third", link).await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    let merge = json!({ "provider": "second", "id_token": token(&at("second", "grace")) });
    let merged = ask(Method::POST, "/api/v1/me/merge", merge).await;
    assert_eq!(merged.status, 200, "{}", merged.text);
    assert_eq!(
        ask(Method::DELETE, "/api/v1/me", json!({})).await.status,
        204
    );
}
