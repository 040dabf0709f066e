//! Changes of a user's identities or account that need more than an access token.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{self, claims, now, with};

const LINK: &str = "/api/v1/me/identities/second";

fn at(provider: &str, subject: &str) -> Value {
    token::at(provider, subject, &format!("{subject}@{provider}.example"))
}

fn ada() -> Value {
    claims("ada", "ada@example.com")
}

async fn delete(app: &App, token: &str, path: &str, reauthentication: &Value) -> Answer {
    let body = json!({ "reauthentication": reauthentication });
    app.as_user(token, Method::DELETE, path, Some(&body)).await
}

async fn link(app: &App, token: &str, reauthentication: &Value) -> Answer {
    let body = json!({ "id_token": app.token(&at("second", "new")), "reauthentication": reauthentication });
    app.as_user(token, Method::POST, LINK, Some(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_alone_changes_nothing_that_lasts() {
    let app = App::start().await;
    let opened = app.sign_in(&ada()).await;
    app.sign_in_at(
        "third",
        &with(at("third", "ada-3"), &json!({ "email": "ada@example.com" })),
    )
    .await;
    let identity = format!("/api/v1/me/identities/{}", opened.identity_id());
    app.age(601.0).await;
    let before = (app.database.rows().await, app.provider.calls());
    // A refresh does not make the session newer.
    let refreshed = app.refresh(&opened.refresh_token()).await;
    for token in [opened.access_token(), refreshed.access_token()] {
        for answer in [
            link(&app, &token, &Value::Null).await,
            app.delete(&token, &identity).await,
            app.delete(&token, "/api/v1/me").await,
            app.as_user(&token, Method::DELETE, "/api/v1/me", Some(&json!({})))
                .await,
        ] {
            assert_problem(&answer, 403, "reauthentication_required");
        }
        assert_eq!(
            app.get(&token, "/api/v1/me").await.status,
            200,
            "what changes nothing goes on"
        );
    }
    let rows = app.database.rows().await;
    assert_eq!(
        (rows[0], rows[1], app.provider.calls()),
        (before.0[0], before.0[1], before.1)
    );

    let again = app.sign_in(&ada()).await.access_token();
    app.age(590.0).await;
    assert_eq!(link(&app, &again, &Value::Null).await.status, 201);
    assert_eq!(
        app.delete(&again, &identity).await.status,
        204,
        "it ends the session, too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_token_lets_users_link_unlink_and_delete_themselves() {
    let app = App::start().await;
    let token = app.sign_in(&ada()).await.access_token();
    app.age(3600.0).await;
    let proof = |claims: &Value| json!({ "provider": "idp", "id_token": app.token(claims) });
    let linked = link(&app, &token, &proof(&ada())).await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    let of_linked = format!(
        "/api/v1/me/identities/{}",
        linked.json()["id"].as_str().unwrap()
    );
    let mut nonce = proof(&with(ada(), &json!({ "nonce": "n" })));
    nonce["nonce"] = "n".into();
    assert_eq!(delete(&app, &token, &of_linked, &nonce).await.status, 204);
    assert_eq!(
        delete(&app, &token, "/api/v1/me", &proof(&ada()))
            .await
            .status,
        204
    );
    assert_eq!(app.database.rows().await[..2], [0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reauthentication_needs_a_fresh_valid_token_of_the_user() {
    let app = App::start_with(|figment| figment.merge(("providers.third.enabled", false))).await;
    let token = app.sign_in(&ada()).await.access_token();
    app.sign_in(&claims("grace", "grace@example.com")).await;
    app.age(601.0).await;
    let at_provider = |provider: &str, claims: Value| json!({ "provider": provider, "id_token": app.token(&claims) });
    let of = |claims: Value| at_provider("idp", claims);
    let changed = |changes: Value| of(with(ada(), &changes));
    let to_link = at_provider("second", at("second", "new"));
    let rows = [
        (
            "kept for long",
            changed(json!({ "iat": now() - 601 })),
            422,
            "token_expired",
        ),
        (
            "another application's",
            changed(json!({ "aud": "x", "azp": "x" })),
            422,
            "audience_mismatch",
        ),
        (
            "made for a nonce",
            changed(json!({ "nonce": "n" })),
            422,
            "nonce_mismatch",
        ),
        (
            "another user's",
            of(claims("grace", "grace@example.com")),
            403,
            "reauthentication_required",
        ),
        (
            "nobody's, yet",
            of(claims("new", "ada@example.com")),
            403,
            "reauthentication_required",
        ),
        (
            "the one to be linked",
            to_link,
            403,
            "reauthentication_required",
        ),
        (
            "switched off",
            json!({ "provider": "third", "id_token": "x.y.z" }),
            400,
            "invalid_request",
        ),
        (
            "of a provider that is switched off",
            at_provider("third", ada()),
            403,
            "provider_disabled",
        ),
        (
            "of no provider",
            json!({ "provider": "fifth", "id_token": "x" }),
            400,
            "invalid_request",
        ),
        (
            "of nobody",
            json!({ "id_token": app.token(&ada()) }),
            400,
            "invalid_request",
        ),
        ("empty", json!({}), 400, "invalid_request"),
        ("a text", json!("x.y.z"), 400, "invalid_request"),
    ];
    for (what, proof, status, error) in rows {
        for answer in [
            link(&app, &token, &proof).await,
            delete(&app, &token, "/api/v1/me", &proof).await,
        ] {
            assert_eq!(answer.error(), error, "{what}: {}", answer.text);
            assert_problem(&answer, status, error);
        }
    }
    assert_eq!(app.database.rows().await[..2], [2, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_session_needs_the_users_proof_only_with_a_code() {
    let app = App::start().await;
    let token = app.sign_in(&ada()).await.access_token();
    app.sign_in(&claims("grace", "grace@example.com")).await;
    let mut proof =
        json!({ "provider": "idp", "id_token": app.token(&claims("grace", "grace@example.com")) });
    assert_eq!(
        link(&app, &token, &proof).await.status,
        201,
        "the session is proof enough"
    );
    proof["authorization_code"] = "code".into();
    let rows = app.database.rows().await;
    let refused = delete(&app, &token, "/api/v1/me", &proof).await;
    assert_problem(&refused, 403, "reauthentication_required");
    assert_eq!(app.database.rows().await, rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_id_token_with_an_access_token_is_never_401() {
    let app = App::start().await;
    let opened = app.sign_in(&ada()).await;
    let identity = format!("/api/v1/me/identities/{}", opened.identity_id());
    let faults = [
        ("invalid_token", json!({ "sub": "" })),
        ("invalid_token", json!({ "iat": now() + 120 })),
        ("token_expired", json!({ "exp": 1 })),
        (
            "issuer_mismatch",
            json!({ "iss": "https://elsewhere.example" }),
        ),
        ("audience_mismatch", json!({ "azp": "elsewhere" })),
        ("nonce_mismatch", json!({ "nonce": "n" })),
    ];
    let token = opened.access_token();
    for (error, fault) in &faults {
        let sent = json!({ "id_token": app.token(&with(at("second", "new"), fault)) });
        let answer = app.as_user(&token, Method::POST, LINK, Some(&sent)).await;
        assert_eq!(answer.header("WWW-Authenticate"), None, "{}", answer.text);
        assert_problem(&answer, 422, error);
    }
    app.age(601.0).await;
    for (error, fault) in &faults {
        for (method, path) in [
            (Method::POST, LINK),
            (Method::DELETE, &identity),
            (Method::DELETE, "/api/v1/me"),
        ] {
            let proof = json!({ "provider": "idp", "id_token": app.token(&with(ada(), fault)) });
            let mut sent = json!({ "reauthentication": proof });
            if path == LINK {
                sent["id_token"] = app.token(&at("second", "new")).into();
            }
            let answer = app.as_user(&token, method, path, Some(&sent)).await;
            assert_eq!(answer.header("WWW-Authenticate"), None, "{}", answer.text);
            assert_problem(&answer, 422, error);
        }
    }
    for (body, detail) in [
        (json!({}), "`id_token` is missing"),
        (json!({ "id_token": 1 }), "`id_token` must be a string"),
        (
            json!({ "id_token": "x", "reauthentication": {} }),
            "`reauthentication.provider` must be",
        ),
        (
            json!({ "id_token": "x", "reauthentication": { "provider": "idp" } }),
            "`reauthentication.id_token` is missing",
        ),
    ] {
        let answer = app
            .as_user(
                &app.sign_in(&ada()).await.access_token(),
                Method::POST,
                LINK,
                Some(&body),
            )
            .await;
        assert_problem(&answer, 400, "invalid_request");
        assert!(
            answer.json()["detail"]
                .as_str()
                .unwrap()
                .starts_with(detail),
            "{}",
            answer.text
        );
    }
    assert_eq!(app.database.rows().await[..2], [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reauthentication_counts_as_a_sign_in_of_its_address() {
    let app = App::start_with(|figment| {
        figment
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", 2))
    })
    .await;
    let token = app.sign_in(&ada()).await.access_token();
    app.age(601.0).await;
    let proof = json!({ "provider": "idp", "id_token": app.token(&claims("x", "")) });
    for status in [403, 429] {
        let answer = delete(&app, &token, "/api/v1/me", &proof).await;
        assert_eq!(answer.status, status, "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_a_session_is_fresh_is_a_setting() {
    let app =
        App::start_with(|figment| figment.merge(("session.reauthentication_window", 60))).await;
    let token = app.sign_in(&ada()).await.access_token();
    app.age(61.0).await;
    assert_problem(
        &app.delete(&token, "/api/v1/me").await,
        403,
        "reauthentication_required",
    );
}
