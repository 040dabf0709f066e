//! Reports of Apple and Facebook, and Facebook's data deletion requests, signed with keys of the
//! tests.

use std::collections::BTreeSet;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use figment::Figment;
use reqwest::Method;
use rocket::futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};
use vestibule::prune::{Pruned, prune};

use crate::support::app::{Answer, App, LIMITS};
use crate::support::problem::assert_problem;
use crate::support::provider::{Behaviour, Provider};
use crate::support::signer::{Signer, base64, jwks};
use crate::support::token::{claims, now, with};

const APPLE_APP: &str = "com.example.app";
const FACEBOOK_APP: &str = "1234567890";
const APP_SECRET: &str = "the app secret of the tests";
const FORM: &str = "application/x-www-form-urlencoded";
const DELETION: &str = "/api/v1/providers/facebook/data-deletion";
/// One byte more than the largest accepted message.
const TOO_LARGE: usize = 256 * 1024 + 1;

/// Starts a service with Apple and Facebook, and a server that publishes their keys.
async fn app_and_keys() -> (App, Provider) {
    app_and_keys_with(|figment, _| figment).await
}

/// Like [`app_and_keys`], with further settings, which may contain the URL of the keys.
async fn app_and_keys_with(settings: impl FnOnce(Figment, &str) -> Figment) -> (App, Provider) {
    let keys = Provider::start().await;
    keys.behave(Behaviour::Json(jwks(&[Signer::Rsa.jwk()])));
    let url = format!("{}/keys", keys.url());
    let app = App::start_with(|figment| {
        let figment = figment
            .merge((
                "providers.apple",
                json!({ "preset": "apple", "client_id": "com.example.web", "additional_client_ids": [APPLE_APP],
                        "jwks_url": url }),
            ))
            .merge((
                "providers.facebook",
                json!({ "preset": "facebook", "client_id": FACEBOOK_APP, "client_secret": APP_SECRET, "jwks_url": url }),
            ));
        settings(figment, &url)
    });
    (app.await, keys)
}

/// Signs in with a new token of this subject.
async fn sign_in(app: &App, provider: &str, subject: &str) -> Answer {
    sign_in_by(app, provider, subject, now()).await
}

/// Signs in with this subject's token issued at `iat`.
async fn sign_in_by(app: &App, provider: &str, subject: &str, iat: i64) -> Answer {
    let (issuer, client) = match provider {
        "apple" => ("https://appleid.apple.com", APPLE_APP),
        _ => ("https://www.facebook.com", FACEBOOK_APP),
    };
    let claims = json!({
        "iss": issuer, "aud": client, "sub": subject, "iat": iat, "exp": now() + 600,
        "email": format!("{subject}@facebook.example"), "name": format!("{subject} of Facebook"),
        "picture": "https://facebook.example/picture",
    });
    app.post(provider, &json!({ "id_token": Signer::Rsa.token(&claims) }))
        .await
}

/// Returns an identity's open sessions, whether it is suspended, and its events by reason.
async fn state(app: &App, subject: &str) -> (i64, bool, Vec<String>) {
    let (sessions, suspended) = sqlx::query_as(
        "SELECT count(s.id) FILTER (WHERE s.ended_at IS NULL), bool_or(i.suspended_at IS NOT NULL)
         FROM identities i JOIN sessions s ON s.identity_id = i.id WHERE i.subject = $1",
    )
    .bind(subject)
    .fetch_one(&app.database.pool)
    .await
    .unwrap();
    let events = sqlx::query_scalar(
        "SELECT e.reason FROM events e JOIN identities i ON i.user_id = e.user_id
         WHERE i.subject = $1 AND e.kind = 'provider_event' AND e.provider = i.provider
               AND e.detail->>'identity_id' = i.id::text ORDER BY e.id",
    );
    let events = events
        .bind(subject)
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
    (sessions, suspended, events)
}

/// Returns Apple's claims about an event that happened `ago` seconds ago.
fn told(kind: &str, subject: &str, ago: i64) -> Value {
    let event = json!({
        "type": kind, "sub": subject, "event_time": (now() - ago) * 1000,
        "email": "relay@privaterelay.appleid.com", "is_private_email": "true",
    });
    json!({
        "iss": "https://appleid.apple.com", "aud": APPLE_APP, "iat": now(), "exp": now() + 86_400,
        "jti": Uuid::new_v4(), "events": event.to_string(),
    })
}

async fn notify(app: &App, payload: &str) -> u16 {
    let answer = app
        .post_to(
            "/api/v1/providers/apple/events",
            &json!({ "payload": payload }),
        )
        .await;
    if answer.status == 200 {
        assert_eq!(answer.text, "");
    }
    answer.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_genuine_new_apple_notification_takes_effect_exactly_once() {
    let (app, _keys) = app_and_keys().await;
    let kinds = [
        ("email-disabled", "email_disabled", false, false),
        ("email-enabled", "email_enabled", false, false),
        ("consent-revoked", "consent_revoked", true, false),
        ("account-delete", "account_deleted", true, true),
        ("account-deleted", "account_deleted", true, true),
    ];
    for (users, (kind, reason, ends, suspends)) in (1_i64..).zip(kinds) {
        let subject = format!("00000{users}.apple");
        let opened = sign_in(&app, "apple", &subject).await;
        assert_eq!(opened.outcome(), "created", "{}", opened.text);
        let untouched = (1, false, vec![]);
        let changed = |name: &str, value: Value| {
            let mut claims = told(kind, &subject, 0);
            claims[name] = value;
            claims
        };
        let genuine = told(kind, &subject, 0);
        for (what, payload) in [
            (
                "forged",
                Signer::OtherRsa.token_with(&Signer::Rsa.header(), &genuine),
            ),
            (
                "unsigned",
                Signer::Rsa.token_with(&json!({ "alg": "none" }), &genuine),
            ),
            (
                "for another audience",
                Signer::Rsa.token(&changed("aud", json!("com.example.other"))),
            ),
            (
                "of another issuer",
                Signer::Rsa.token(&changed("iss", json!("https://www.facebook.com"))),
            ),
            (
                "from the future",
                Signer::Rsa.token(&changed("iat", json!(now() + 3600))),
            ),
            (
                "too old",
                Signer::Rsa.token(&changed("iat", json!(now() - 31 * 86_400))),
            ),
            (
                "without an id",
                Signer::Rsa.token(&changed("jti", json!(null))),
            ),
            (
                "an id_token",
                Signer::Rsa.token(&changed("events", json!(null))),
            ),
            (
                "an id_token with events",
                Signer::Rsa.token(&changed("sub", json!(subject))),
            ),
            (
                "a token with a nonce",
                Signer::Rsa.token(&changed("nonce", json!("n"))),
            ),
        ] {
            assert_eq!(notify(&app, &payload).await, 400, "{kind} {what}");
            assert_eq!(state(&app, &subject).await, untouched, "{kind} {what}");
        }
        let padding = "p".repeat(TOO_LARGE * 3 / 4);
        let large = Signer::Rsa.token(&changed("padding", json!(padding)));
        assert_eq!(notify(&app, &large).await, 413, "{kind}");
        // A session that was opened after the event stays, even if the message arrives late, unless
        // the account is gone.
        let late = Signer::Rsa.token(&told(kind, &subject, 3600));
        if !suspends {
            assert_eq!(notify(&app, &late).await, 200, "{kind}");
            assert_eq!(
                state(&app, &subject).await,
                (1, false, vec![reason.to_owned()]),
                "{kind} late"
            );
        }
        let before = state(&app, &subject).await.2.len();

        let payload = Signer::Rsa.token(&genuine);
        assert_eq!(notify(&app, &payload).await, 200, "{kind}");
        let (sessions, suspended, events) = state(&app, &subject).await;
        assert_eq!(
            (sessions, suspended),
            (i64::from(!ends), suspends),
            "{kind}"
        );
        assert_eq!(events[before..], [reason], "{kind}");
        let refreshed = app.refresh(&opened.refresh_token()).await;
        assert_eq!(refreshed.status.is_success(), !ends, "{kind}");

        // The owner returns: new consent admits the user after a revocation, but a deleted account
        // stays suspended.
        let again = sign_in(&app, "apple", &subject).await;
        if suspends {
            assert_problem(&again, 403, "identity_suspended");
        } else {
            assert_eq!(again.outcome(), "signed_in", "{kind}: {}", again.text);
        }
        let after = state(&app, &subject).await;
        assert_eq!(notify(&app, &payload).await, 200, "{kind} replayed");
        assert_eq!(state(&app, &subject).await, after, "{kind} replayed");
        assert_eq!(
            app.database.count("SELECT count(*) FROM users").await,
            users,
            "{kind}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_kinds_and_users_in_notifications_are_acknowledged_once() {
    let (app, keys) = app_and_keys().await;
    sign_in(&app, "apple", "000001.apple").await;
    let ids = || app.database.count("SELECT count(*) FROM provider_events");
    let kinds = [
        ("consent-revoked", "000002.apple"),
        ("account-paused", "000001.apple"),
    ];
    for (number, (kind, subject)) in (1_i64..).zip(kinds) {
        let payload = Signer::Rsa.token(&told(kind, subject, 0));
        for _ in 0..2 {
            assert_eq!(notify(&app, &payload).await, 200, "{kind}");
            assert_eq!(ids().await, number, "{kind}");
            let recorded =
                "SELECT count(*) FROM events WHERE kind = 'provider_event' AND user_id IS NULL";
            assert_eq!(app.database.count(recorded).await, 1, "{kind}");
        }
    }
    assert_eq!(state(&app, "000001.apple").await, (1, false, vec![]));
    // The address in a message about an unknown account is not stored, since no user's deletion
    // would erase it.
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events WHERE email LIKE '%privaterelay%'")
            .await,
        0
    );
    assert_eq!(keys.calls(), 1, "the keys are fetched once");
    for body in ["", "{}", "[]", r#"{"payload":"a.b.c"}"#, r#"{"payload":7}"#] {
        let path = "/api/v1/providers/apple/events";
        let answer = app
            .send(Method::POST, path, Some("application/json"), body)
            .await;
        assert_problem(&answer, 400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_fail_while_keys_or_the_database_are_unavailable() {
    let (app, keys) = app_and_keys().await;
    keys.behave(Behaviour::status(500));
    let payload = Signer::Rsa.token(&told("consent-revoked", "000001.apple", 0));
    assert_eq!(notify(&app, &payload).await, 503);
    let (app, _keys) = app_and_keys().await;
    app.database
        .run("ALTER TABLE provider_events RENAME TO gone")
        .await;
    assert!(notify(&app, &payload).await >= 500);
    let request = signed(APP_SECRET, &wish("1", 0));
    let answer = send(&app, "/api/v1/providers/facebook/events", &request).await;
    assert!(answer.status.is_server_error(), "{}", answer.text);
    assert!(
        send(&app, DELETION, &request)
            .await
            .status
            .is_server_error()
    );
}

/// Returns the payload of a request that a Facebook user caused `ago` seconds ago.
fn wish(subject: &str, ago: i64) -> Value {
    json!({ "user_id": subject, "algorithm": "HMAC-SHA256", "issued_at": now() - ago })
}

fn signed(secret: &str, payload: &Value) -> String {
    let payload = base64(payload.to_string());
    let signature = sign(
        &Key::new(HMAC_SHA256, secret.as_bytes()),
        payload.as_bytes(),
    );
    format!("{}.{payload}", base64(signature))
}

async fn send(app: &App, path: &str, request: &str) -> Answer {
    app.send(
        Method::POST,
        path,
        Some(FORM),
        format!("signed_request={request}"),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_the_app_at_facebook_ends_sessions_but_allows_return() {
    let (app, _keys) = app_and_keys().await;
    let path = "/api/v1/providers/facebook/events";
    let opened = sign_in(&app, "facebook", "218471").await;
    assert_eq!(opened.outcome(), "created", "{}", opened.text);
    let forged = send(
        &app,
        path,
        &signed("another app's secret", &wish("218471", 0)),
    )
    .await;
    assert_problem(&forged, 400, "invalid_request");
    assert_eq!(state(&app, "218471").await, (1, false, vec![]));
    assert_eq!(send(&app, path, &"a".repeat(TOO_LARGE)).await.status, 413);
    let genuine = signed(APP_SECRET, &wish("218471", 0));
    for (content_type, body) in [
        (
            Some("application/json"),
            format!("signed_request={genuine}"),
        ),
        (None, format!("signed_request={genuine}")),
        (
            Some(FORM),
            format!("signed_request={genuine}&signed_request={genuine}"),
        ),
        (Some(FORM), "signed=1".to_owned()),
    ] {
        assert_eq!(
            app.send(Method::POST, path, content_type, body)
                .await
                .status,
            400,
            "{content_type:?}"
        );
    }
    let unknown = send(&app, path, &signed(APP_SECRET, &wish("another", 0))).await;
    assert_eq!((unknown.status.as_u16(), unknown.text.as_str()), (200, ""));
    let late = send(&app, path, &signed(APP_SECRET, &wish("218471", 3600))).await;
    assert_eq!(late.status, 200);
    let one = vec!["deauthorized".to_owned()];
    assert_eq!(
        state(&app, "218471").await,
        (1, false, one.clone()),
        "the session is younger"
    );

    assert_eq!(send(&app, path, &genuine).await.status, 200);
    let two = [one.clone(), one].concat();
    assert_eq!(state(&app, "218471").await, (0, false, two.clone()));
    assert_eq!(app.refresh(&opened.refresh_token()).await.status, 401);
    assert_eq!(
        sign_in(&app, "facebook", "218471").await.outcome(),
        "signed_in"
    );
    assert_eq!(send(&app, path, &genuine).await.status, 200, "replayed");
    assert_eq!(state(&app, "218471").await, (1, false, two));
}

#[tokio::test(flavor = "multi_thread")]
async fn facebooks_requests_wait_while_the_app_secret_is_not_set() {
    let app = App::start_with(|figment| {
        figment.merge((
            "providers.facebook",
            json!({ "preset": "facebook", "client_id": FACEBOOK_APP }),
        ))
    });
    let app = app.await;
    for path in ["/api/v1/providers/facebook/events", DELETION] {
        // An empty secret would be known to every attacker.
        let answer = send(&app, path, &signed("", &wish("1", 0))).await;
        assert_problem(&answer, 503, "provider_unavailable");
    }
    assert_eq!(
        app.database
            .count("SELECT count(code) FROM provider_events")
            .await,
        0
    );
}

/// Sends Facebook's request to delete data, which its user made `ago` seconds ago.
async fn delete(app: &App, subject: &str, ago: i64) -> Answer {
    send(app, DELETION, &signed(APP_SECRET, &wish(subject, ago))).await
}

/// Returns the code of a deletion request and the text of its receipt.
async fn receipt(app: &App, answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.json();
    let code = body["confirmation_code"].as_str().unwrap().to_owned();
    assert!(
        code.len() == 32 && code.bytes().all(|b| b.is_ascii_alphanumeric()),
        "{code}"
    );
    let path = format!("/providers/facebook/data-deletion/{code}");
    assert_eq!(body["url"], format!("http://127.0.0.1:8000{path}"));
    let page = app.send(Method::GET, &path, None, "").await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    (code, page.text)
}

/// Returns a user's events: kind, actor and reason.
async fn events(app: &App, user: &str) -> Vec<(String, Option<String>, Option<String>)> {
    all!(
        &app.database.pool,
        "SELECT kind, actor, detail->>'reason' FROM events WHERE user_id = $1::uuid ORDER BY id",
        user
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_delete_deletes_the_user_and_is_done_once() {
    let early = now() - 1;
    let (app, _keys) = app_and_keys().await;
    let opened = sign_in(&app, "facebook", "218471").await;
    let forged = send(
        &app,
        DELETION,
        &signed("another app's secret", &wish("218471", 0)),
    )
    .await;
    assert_problem(&forged, 400, "invalid_request");
    assert_eq!(
        send(&app, DELETION, &"a".repeat(64 * 1024 + 1))
            .await
            .status,
        413
    );
    assert_eq!(state(&app, "218471").await.0, 1);
    assert_eq!(
        app.database
            .count("SELECT count(code) FROM provider_events")
            .await,
        0
    );

    // Both callbacks can receive the same request.
    let request = signed(APP_SECRET, &wish("218471", 0));
    assert_eq!(
        send(&app, "/api/v1/providers/facebook/events", &request)
            .await
            .status,
        200
    );
    let (code, page) = receipt(&app, &send(&app, DELETION, &request).await).await;
    assert!(
        page.contains("was carried out") && page.contains(&code),
        "{page}"
    );
    for personal in ["218471", "of Facebook", "@", &opened.user_id()] {
        assert!(!page.contains(personal), "{personal}: {page}");
    }
    assert_eq!(app.database.count("SELECT count(*) FROM users").await, 0);
    let audit = events(&app, &opened.user_id()).await;
    let (kind, actor, reason) = audit.last().unwrap();
    assert_eq!(
        (kind.as_str(), actor.as_deref()),
        ("user_deleted", Some("provider:facebook"))
    );
    assert!(
        reason.as_deref().unwrap().contains("asked the provider"),
        "{reason:?}"
    );
    let me = app.get(&opened.access_token(), "/api/v1/me").await;
    assert_eq!(
        (me.status.as_u16(), &me.json()["reason"]),
        (401, &json!("user_deleted"))
    );

    // The person returns with a new token. The old request does not affect the new user.
    let replayed = sign_in_by(&app, "facebook", "218471", early).await;
    assert_problem(&replayed, 401, "token_expired");
    assert_eq!(
        sign_in(&app, "facebook", "218471").await.outcome(),
        "created"
    );
    assert_eq!(
        receipt(&app, &send(&app, DELETION, &request).await).await,
        (code.clone(), page)
    );
    assert_eq!(state(&app, "218471").await.0, 1);
    // A late request about the former user does not affect the new user either.
    let (late, _) = receipt(&app, &delete(&app, "218471", 3600).await).await;
    assert_ne!(late, code);
    assert_eq!(state(&app, "218471").await.0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_delete_reaches_each_provider_name_of_its_issuer() {
    let (app, _keys) = app_and_keys_with(|figment, url| {
        let again = json!({ "preset": "facebook", "client_id": FACEBOOK_APP, "client_secret": APP_SECRET,
                            "jwks_url": url, "link": "never" });
        figment.merge(("providers.facebook_web", again))
    })
    .await;
    let opened = sign_in(&app, "facebook", "218471").await;
    let claims = json!({
        "iss": "https://www.facebook.com", "aud": FACEBOOK_APP, "sub": "218471", "iat": now(), "exp": now() + 600,
    });
    let web = app
        .post(
            "facebook_web",
            &json!({ "id_token": Signer::Rsa.token(&claims) }),
        )
        .await;
    assert_ne!(opened.user(), web.user());
    assert_eq!(delete(&app, "218471", 0).await.status, 200);
    assert_eq!(app.database.count("SELECT count(*) FROM users").await, 0);
    for (answer, provider) in [(&opened, "facebook"), (&web, "facebook_web")] {
        let (kind, actor, _) = events(&app, &answer.user_id()).await.pop().unwrap();
        assert_eq!(
            (kind, actor),
            ("user_deleted".into(), Some(format!("provider:{provider}")))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_another_identity_loses_only_what_came_from_facebook() {
    let early = now() - 1;
    let (app, _keys) = app_and_keys().await;
    let opened = sign_in(&app, "facebook", "218471").await;
    let mut google = claims("ada", "ada@example.com");
    google["email_verified"] = "false".into();
    let linked = app.link(&opened.access_token(), "idp", &google).await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    app.database
        .run("INSERT INTO webhooks (name, events) VALUES ('other', '{user.updated,identity.unlinked}')")
        .await;
    let user = &opened.json()["user"];
    assert_eq!(user["email"], "218471@facebook.example");
    assert_eq!(user["name"], "218471 of Facebook");
    let google = app.sign_in(&google).await;
    assert_eq!(google.user_id(), opened.user_id());

    let (code, page) = receipt(&app, &delete(&app, "218471", 0).await).await;
    assert!(
        page.contains("account here remains") && page.contains(&code),
        "{page}"
    );
    assert_eq!(app.refresh(&opened.refresh_token()).await.status, 401);
    let me = app.get(&google.access_token(), "/api/v1/me").await.json();
    assert_eq!(me["id"], opened.user_id());
    assert_eq!(
        (&me["email"], &me["email_verified"]),
        (&json!(null), &json!(false))
    );
    assert_eq!(
        (&me["name"], &me["picture"]),
        (
            &json!("Ada Lovelace"),
            &json!("https://pictures.example/ada")
        )
    );
    assert_eq!(me["identities"].as_array().unwrap().len(), 1);
    let audit = events(&app, &opened.user_id()).await;
    let by_facebook: Vec<_> = audit
        .iter()
        .filter(|(_, actor, _)| actor.as_deref() == Some("provider:facebook"))
        .map(|(kind, ..)| kind.as_str())
        .collect();
    assert_eq!(by_facebook, ["identity_unlinked", "user_updated"]);
    let fields: Value = app
        .database
        .value(
            "SELECT detail FROM events WHERE kind = 'user_updated' AND actor = 'provider:facebook'",
        )
        .await;
    assert_eq!(fields, json!({ "fields": ["email", "name", "picture"] }));
    let mut messages: Vec<String> = app
        .database
        .values("SELECT type FROM webhook_messages")
        .await;
    messages.sort_unstable();
    assert_eq!(messages, ["identity.unlinked", "user.updated"]);
    let replayed = sign_in_by(&app, "facebook", "218471", early).await;
    assert_problem(&replayed, 401, "token_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_deletion_request_finds_its_identity_after_merge_or_move() {
    let (app, _keys) = app_and_keys().await;
    for (change, ago) in [("merge", 600), ("move", 900)] {
        let from = sign_in(&app, "facebook", "218471").await.user();
        let to = app
            .sign_in(&claims(change, &format!("{change}@example.com")))
            .await
            .user();
        let identity: Uuid = app.database.value("UPDATE identities SET created_at = now() - interval '1 hour' WHERE provider = 'facebook' RETURNING id").await;
        let asked = match change {
            "merge" => Change::Merge { from, into: to },
            _ => Change::Move { identity, from, to },
        };
        assert_eq!(app.by_staff(asked).await, Some(Outcome::Done), "{change}");
        let answer = delete(&app, "218471", ago).await;
        let (_, page) = receipt(&app, &answer).await;
        assert!(page.contains("account here remains"), "{change}: {page}");
        let left = "SELECT count(*) FROM identities WHERE provider = 'facebook'";
        assert_eq!(app.database.count(left).await, 0, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_identity_or_the_product_says_of_a_user_stays() {
    let (app, _keys) = app_and_keys().await;
    let opened = sign_in(&app, "facebook", "218471").await;
    let name = "218471 of Facebook";
    let picture = "https://facebook.example/picture";
    let same = with(
        claims("ada", "218471@facebook.example"),
        &json!({ "name": name, "picture": picture }),
    );
    app.link(&opened.access_token(), "idp", &same).await;
    delete(&app, "218471", 0).await;
    let user: (String, String, String, bool) = app
        .database
        .row("SELECT email, name, picture, email_verified FROM users")
        .await;
    assert_eq!(
        user,
        (
            "218471@facebook.example".into(),
            name.into(),
            picture.into(),
            true
        )
    );

    let opened = sign_in(&app, "facebook", "imported").await;
    run!(
        &app.database.pool,
        "UPDATE users SET imported_at = now(), email_verified = true WHERE id = $1::uuid",
        opened.user_id()
    );
    app.link(
        &opened.access_token(),
        "idp",
        &claims("grace", "grace@example.com"),
    )
    .await;
    delete(&app, "imported", 0).await;
    let email: Option<String> = value!(
        &app.database.pool,
        "SELECT email FROM users WHERE id = $1::uuid",
        opened.user_id()
    );
    assert_eq!(email.as_deref(), Some("imported@facebook.example"));

    let opened = sign_in(&app, "facebook", "named").await;
    let other = with(claims("mary", "mary@example.com"), &json!({ "name": null }));
    app.link(&opened.access_token(), "idp", &other).await;
    let own = json!({ "name": "named of Facebook" });
    let named = app
        .as_user(
            &opened.access_token(),
            Method::PATCH,
            "/api/v1/me",
            Some(&own),
        )
        .await;
    assert_eq!(named.status, 200, "{}", named.text);
    let deleted = delete(&app, "named", 0).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text);
    let name: Option<String> = value!(
        &app.database.pool,
        "SELECT name FROM users WHERE id = $1::uuid",
        opened.user_id()
    );
    assert_eq!(
        name.as_deref(),
        Some("named of Facebook"),
        "the user's own word"
    );
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM identities WHERE provider = 'facebook'")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_request_does_not_restore_a_disabled_users_access() {
    let (app, _keys) = app_and_keys().await;
    let opened = sign_in(&app, "facebook", "218471").await;
    app.database
        .run("UPDATE users SET disabled_at = now()")
        .await;
    let request = signed(APP_SECRET, &wish("218471", 0));
    let (code, page) = receipt(&app, &send(&app, DELETION, &request).await).await;
    assert!(
        page.contains("was not carried out") && page.contains(&code),
        "{page}"
    );
    assert_eq!(
        sign_in(&app, "facebook", "218471").await.error(),
        "user_disabled"
    );
    receipt(&app, &send(&app, DELETION, &request).await).await;
    let kept: Vec<_> = events(&app, &opened.user_id())
        .await
        .into_iter()
        .map(|(kind, ..)| kind)
        .collect();
    assert_eq!(
        kept.iter()
            .filter(|kind| *kind == "data_deletion_kept")
            .count(),
        1,
        "{kept:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_users_deletion_requests_are_done_and_interrupted_ones_resume() {
    let (app, _keys) = app_and_keys().await;
    let request = signed(APP_SECRET, &wish("nobody", 0));
    let (code, page) = receipt(&app, &send(&app, DELETION, &request).await).await;
    assert!(page.contains("holds nothing"), "{page}");
    // As if the process had ended after the deletion.
    app.database
        .run("UPDATE provider_events SET outcome = NULL")
        .await;
    let pending = app
        .send(
            Method::GET,
            &format!("/providers/facebook/data-deletion/{code}"),
            None,
            "",
        )
        .await;
    assert!(pending.text.contains("has arrived"), "{}", pending.text);
    assert_eq!(
        receipt(&app, &send(&app, DELETION, &request).await).await,
        (code.clone(), page)
    );

    for path in [
        "/providers/facebook/data-deletion/0b3f6c1e5d2a4f7e9c8b1a2d3e4f5a6b".to_owned(),
        "/providers/facebook/data-deletion/x".into(),
        format!("/providers/idp/data-deletion/{code}"),
        format!("/providers/unknown/data-deletion/{code}"),
    ] {
        let page = app.send(Method::GET, &path, None, "").await;
        assert_eq!(page.status, 404, "{path}");
        assert!(
            page.text.contains("No request with this code"),
            "{path}: {}",
            page.text
        );
    }
    for (provider, error) in [
        ("idp", "not_found"),
        ("apple", "not_found"),
        ("unknown", "provider_not_found"),
    ] {
        let path = format!("/api/v1/providers/{provider}/data-deletion");
        let answer = send(&app, &path, &request).await;
        assert_problem(&answer, 404, error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_come_at_once_delete_once_and_get_one_code() {
    let (app, _keys) = app_and_keys().await;
    let opened = sign_in(&app, "facebook", "218471").await;
    let request = signed(APP_SECRET, &wish("218471", 0));
    let all = join_all((0..16).map(|_| send(&app, DELETION, &request))).await;
    let codes: BTreeSet<_> = all
        .iter()
        .map(|answer| answer.json()["confirmation_code"].to_string())
        .collect();
    assert!(all.iter().all(|answer| answer.status == 200), "{all:?}");
    assert_eq!(codes.len(), 1, "{codes:?}");
    let deleted = events(&app, &opened.user_id())
        .await
        .into_iter()
        .filter(|(kind, ..)| kind == "user_deleted");
    assert_eq!(deleted.count(), 1);
    assert_eq!(
        app.database
            .count("SELECT count(code) FROM provider_events")
            .await,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_known_for_ninety_days() {
    let (app, _keys) = app_and_keys().await;
    for subject in ["young", "old"] {
        delete(&app, subject, 0).await;
    }
    let aged = "UPDATE provider_events SET received_at = now() - interval '1 hour' - interval '1 day' * CASE WHEN n = 1 THEN 89 ELSE 90 END
                FROM (SELECT code AS c, row_number() OVER (ORDER BY code) AS n FROM provider_events WHERE code IS NOT NULL) AS numbered WHERE code = c";
    app.database.run(aged).await;
    let pruned = prune(&app.database.service, LIMITS).await.unwrap();
    assert_eq!(
        pruned,
        Pruned {
            provider_events: 1,
            ..Pruned::default()
        }
    );
    assert_eq!(
        app.database
            .count("SELECT count(code) FROM provider_events")
            .await,
        1
    );
}
