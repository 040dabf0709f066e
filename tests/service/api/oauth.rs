//! `POST /api/v1/auth/token` and `/api/v1/auth/revoke`: RFC 6749 and RFC 7009, for standard
//! clients.

use reqwest::Method;
use serde_json::json;
use url::form_urlencoded::Serializer;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{CLIENT_ID, claims};

const FORM: &str = "application/x-www-form-urlencoded";

async fn post(app: &App, path: &str, fields: &[(&str, &str)]) -> Answer {
    let form = Serializer::new(String::new()).extend_pairs(fields).finish();
    app.send(
        Method::POST,
        &format!("/api/v1/auth/{path}"),
        Some(FORM),
        form,
    )
    .await
}

async fn refresh(app: &App, token: &str) -> Answer {
    post(
        app,
        "token",
        &[("grant_type", "refresh_token"), ("refresh_token", token)],
    )
    .await
}

async fn sign_in(app: &App) -> Answer {
    app.sign_in(&claims("subject", "ada@example.com")).await
}

/// Asserts an error in the standard's form, with these members only.
#[track_caller]
fn assert_error(answer: &Answer, error: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.error().as_str()),
        (400, error),
        "{}",
        answer.text
    );
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    let body = answer.json();
    let description = body["error_description"].as_str().unwrap();
    assert!(
        description
            .bytes()
            .all(|b| matches!(b, 0x20..=0x7e) && b != b'"' && b != b'\\'),
        "{description}"
    );
    assert_eq!(
        body,
        json!({ "error": error, "error_description": description })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standard_refresh_rotates_as_the_other_does() {
    let app = App::start().await;
    let first = sign_in(&app).await;
    let second = refresh(&app, &first.refresh_token()).await;
    assert_eq!(second.status, 200, "{}", second.text);
    assert_eq!(second.header("Cache-Control"), Some("no-store"));
    let json = second.json();
    assert_eq!(
        (json["token_type"].as_str(), json["expires_in"].as_u64()),
        (Some("Bearer"), Some(900))
    );
    let members: Vec<_> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "access_token",
        "expires_in",
        "refresh_expires_in",
        "refresh_token",
        "token_type",
    ];
    assert_eq!(members, expected);
    assert_ne!(second.refresh_token(), first.refresh_token());
    assert_eq!(
        app.get(&second.access_token(), "/api/v1/me").await.json()["id"],
        first.user_id()
    );
    let third = app.refresh(&second.refresh_token()).await;
    assert_eq!(
        refresh(&app, &third.refresh_token()).await.status,
        200,
        "the two take the same tokens"
    );
    // A replayed token, the newest token of the session that the replay ended, and an unknown
    // token.
    for token in [
        first.refresh_token(),
        third.refresh_token(),
        "unknown".into(),
    ] {
        assert_error(&refresh(&app, &token).await, "invalid_grant");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_standard_requests_get_standard_oauth_errors() {
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let app = App::start().await;
    let token = sign_in(&app).await.refresh_token();
    let grant = ("grant_type", "refresh_token");
    let rows: [(&str, Fields<'_>, &str); 8] = [
        ("token", &[], "invalid_request"),
        ("token", &[("refresh_token", &token)], "invalid_request"),
        ("token", &[grant, ("refresh_token", "")], "invalid_request"),
        (
            "token",
            &[grant, grant, ("refresh_token", &token)],
            "invalid_request",
        ),
        (
            "token",
            &[grant, ("refresh_token", &token), ("refresh_token", &token)],
            "invalid_request",
        ),
        (
            "token",
            &[("grant_type", "password"), ("refresh_token", &token)],
            "unsupported_grant_type",
        ),
        ("revoke", &[], "invalid_request"),
        (
            "revoke",
            &[("token", &token), ("token", &token)],
            "invalid_request",
        ),
    ];
    for (path, fields, error) in rows {
        assert_error(&post(&app, path, fields).await, error);
    }
    for path in ["/api/v1/auth/token", "/api/v1/auth/revoke"] {
        let json = json!({ "grant_type": "refresh_token", "refresh_token": token, "token": token })
            .to_string();
        assert_error(
            &app.send(Method::POST, path, Some("application/json"), json)
                .await,
            "invalid_request",
        );
        let large = format!("token={}", "x".repeat(32 << 10));
        assert_problem(
            &app.send(Method::POST, path, Some(FORM), large).await,
            413,
            "payload_too_large",
        );
        assert_problem(
            &app.send(Method::GET, path, None, "").await,
            405,
            "method_not_allowed",
        );
    }
    assert_eq!(
        refresh(&app, &token).await.status,
        200,
        "none of it hurt the session"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_ends_the_session_of_either_token_and_no_other() {
    let app = App::start().await;
    let bystander = sign_in(&app).await;
    for by_access_token in [true, false] {
        let answer = sign_in(&app).await;
        let token = if by_access_token {
            answer.access_token()
        } else {
            answer.refresh_token()
        };
        for hint in ["refresh_token", "access_token"] {
            let fields = [
                ("token", token.as_str()),
                ("token_type_hint", hint),
                ("client_id", CLIENT_ID),
            ];
            let revoked = post(&app, "revoke", &fields).await;
            assert_eq!(
                (revoked.status.as_u16(), revoked.text.as_str()),
                (200, ""),
                "also the second time"
            );
            assert_eq!(revoked.header("Cache-Control"), Some("no-store"));
        }
        assert_error(
            &refresh(&app, &answer.refresh_token()).await,
            "invalid_grant",
        );
        assert_eq!(
            app.get(&answer.access_token(), "/api/v1/me").await.status,
            401
        );
    }
    for unknown in ["x", "x.y.z", "an-opaque-text-of-43-characters-to-be-kept-"] {
        assert_eq!(
            post(&app, "revoke", &[("token", unknown)]).await.status,
            200
        );
    }
    assert_eq!(refresh(&app, &bystander.refresh_token()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standard_client_finds_what_it_needs_in_the_metadata() {
    let app = App::start_with(|figment| figment.merge(("rate_limit.enabled", true))).await;
    let token = sign_in(&app).await.refresh_token();
    let metadata = app
        .send(
            Method::GET,
            "/.well-known/oauth-authorization-server",
            None,
            "",
        )
        .await
        .json();
    assert_eq!(metadata["grant_types_supported"], json!(["refresh_token"]));
    let issuer = metadata["issuer"].as_str().unwrap();
    let path = |name: &str| {
        metadata[name]
            .as_str()
            .unwrap()
            .strip_prefix(issuer)
            .unwrap()
            .to_owned()
    };
    // The `client_id` in the request has no effect on the token.
    let form = format!("grant_type=refresh_token&refresh_token={token}&client_id=another");
    let next = app
        .send(Method::POST, &path("token_endpoint"), Some(FORM), form)
        .await;
    assert_eq!(next.status, 200, "{}", next.text);
    assert!(
        next.header("RateLimit")
            .unwrap()
            .starts_with("\"refresh\";"),
        "limited as any refresh"
    );
    let form = format!("token={}&client_id=another", next.refresh_token());
    assert_eq!(
        app.send(Method::POST, &path("revocation_endpoint"), Some(FORM), form)
            .await
            .status,
        200
    );
    assert_error(&refresh(&app, &next.refresh_token()).await, "invalid_grant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_too_many_fields_is_refused_and_ends_nothing() {
    let app = App::start().await;
    let token = sign_in(&app).await.refresh_token();
    let ask = async |fields: usize| {
        let names: Vec<_> = (0..fields)
            .map(|number| format!("field-{number}"))
            .collect();
        let known = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str()),
        ];
        let fields: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), "1"))
            .chain(known)
            .collect();
        post(&app, "token", &fields).await
    };
    for fields in [127, 1_500] {
        assert_error(&ask(fields).await, "invalid_request");
    }
    // A client may send parameters that the standard does not define (RFC 6749 §3.2).
    assert_eq!(ask(126).await.status, 200);
}
