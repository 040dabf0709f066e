//! Verification of messages, and the ways in which senders name an account.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    EVENTS, EventsApp, ISSUER, MEDIA_TYPE, NAME, RISC, SENDER, assert_refused, genuine, header,
    message,
};
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::provider::{Behaviour, Provider};
use crate::support::signer::{Signer, base64, hs256, jwks, signed};
use crate::support::token::{CLIENT_ID, at, now, with};

fn revoked() -> String {
    format!("{RISC}/sessions-revoked")
}

/// Returns the claims of a message that revokes an account's sessions.
fn revocation(subject: &str) -> Value {
    message(&revoked(), subject, &json!({}))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_named_in_any_of_the_documented_forms() {
    let events_app = EventsApp::open().await;
    let by_subject = |subject: Value| json!({ "events": { revoked(): { "subject": subject } } });
    let named = |sub_id: Value| json!({ "sub_id": sub_id, "events": { revoked(): {} } });
    let forms = [
        // Google.
        by_subject(json!({ "subject_type": "iss-sub", "iss": SENDER, "sub": "ada" })),
        by_subject(json!({ "subject_type": "iss_sub", "iss": ISSUER, "sub": "ada" })),
        by_subject(
            json!({ "subject_type": "id_token_claims", "iss": SENDER, "sub": "ada", "email": "other@example.com" }),
        ),
        by_subject(json!({ "subject_type": "id_token_claims", "email": "ADA@example.com" })),
        // RFC 9493 and the Shared Signals Framework.
        named(json!({ "format": "iss_sub", "iss": SENDER, "sub": "ada" })),
        named(json!({ "format": "email", "email": "ada@example.com" })),
        named(json!({ "format": "opaque", "id": "ada" })),
        named(
            json!({ "format": "complex", "user": { "format": "iss_sub", "iss": ISSUER, "sub": "ada" },
                      "session": { "format": "opaque", "id": "their-session" } }),
        ),
        named(json!({ "format": "aliases", "identifiers": [
            { "format": "phone_number", "phone_number": "+1" }, { "format": "email", "email": "grace@example.com" },
            { "format": "iss_sub", "iss": ISSUER, "sub": "ada" } ] })),
        json!({ "events": { revoked(): { "sub_id": { "format": "opaque", "id": "ada" } } } }),
        json!({ "sub": "ada", "events": { revoked(): {} } }),
        json!({ "events": { revoked(): { "subject": { "user": { "format": "email", "email": "ada@example.com" } } } } }),
    ];
    for form in forms {
        events_app.sign_in("ada").await;
        events_app.tell(&with(revocation("x"), &form)).await;
        assert_eq!(events_app.state("ada").await.sessions, 0, "{form}");
    }
    // These identifiers match no account here. The message is acknowledged and changes nothing.
    events_app.sign_in("ada").await;
    for form in [
        named(json!({ "format": "phone_number", "phone_number": "+15550100" })),
        named(json!({ "format": "complex", "session": { "format": "opaque", "id": "ada" } })),
        named(json!({ "format": "aliases", "identifiers": [] })),
        by_subject(
            json!({ "subject_type": "oauth_token", "token_type": "refresh_token",
                           "token_identifier_alg": "hash_SHA512_double", "token": "ada" }),
        ),
    ] {
        events_app.tell(&with(revocation("x"), &form)).await;
        assert_eq!(events_app.state("ada").await.sessions, 1, "{form}");
    }
    // A missing, malformed or foreign identifier makes the message invalid.
    for form in [
        json!({ "events": { revoked(): {} } }),
        by_subject(json!({ "subject_type": "iss-sub", "iss": SENDER })),
        by_subject(
            json!({ "subject_type": "iss-sub", "iss": "https://other.example", "sub": "ada" }),
        ),
        by_subject(json!({ "subject_type": "iss-sub", "iss": SENDER, "sub": "a".repeat(256) })),
        by_subject(json!({ "subject_type": "iss-sub", "iss": SENDER, "sub": "ada\u{0}" })),
        named(json!({ "format": "email" })),
    ] {
        let token = genuine(&with(revocation("x"), &form));
        assert_refused(&events_app.send(&token).await, "invalid_request");
        assert_eq!(events_app.state("ada").await.sessions, 1, "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_events_may_name_the_same_account_by_subject_and_email() {
    let events_app = EventsApp::open().await;
    events_app.sign_in("ada").await;
    let by_subject = json!({ "subject_type": "iss-sub", "iss": SENDER, "sub": "ada" });
    let by_email = json!({ "subject_type": "email", "email": "ada@example.com" });
    let events = json!({
        format!("{RISC}/account-credential-change-required"): { "subject": by_subject },
        format!("{RISC}/identifier-changed"): { "subject": by_email, "new-value": "ada@new.example" },
    });
    events_app
        .tell(&with(revocation("x"), &json!({ "events": events })))
        .await;
    assert_eq!(events_app.state("ada").await.sessions, 0);
    let recorded = events_app.recorded().await;
    let mut kinds: Vec<_> = recorded.iter().map(|(kind, ..)| kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["credential_change", "identifier_changed"]);
    assert!(
        recorded
            .iter()
            .all(|(_, whose, _)| whose.is_some() && *whose == recorded[0].1),
        "{recorded:?}"
    );
    let ended = recorded
        .iter()
        .filter_map(|(.., detail)| detail["sessions"].as_i64())
        .sum::<i64>();
    assert_eq!(ended, 1, "{recorded:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_two_accounts_had_names_neither() {
    let events_app = EventsApp::open().await;
    events_app.sign_in("ada").await;
    events_app
        .app
        .sign_in_at(NAME, &at(NAME, "eve", "ada@example.com"))
        .await;
    let by_email = json!({ "sub_id": { "format": "email", "email": "ada@example.com" }, "events": { revoked(): {} } });
    events_app.tell(&with(revocation("x"), &by_email)).await;
    for subject in ["ada", "eve"] {
        assert_eq!(events_app.state(subject).await.sessions, 1, "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_security_event_tokens_signed_by_the_providers_keys_are_accepted() {
    let events_app = EventsApp::open().await;
    events_app.sign_in("ada").await;
    let claims = revocation("ada");
    let text = claims.to_string();
    let of = |header: Value| Signer::Ec.token_with(&header, &claims);
    let unsigned = format!("{}.{}.", base64(r#"{"alg":"none"}"#), base64(&text));
    let with_secret = signed(r#"{"alg":"HS256","kid":"rsa-1"}"#, &text, |message| {
        hs256(&Signer::Rsa.public_der(), message)
    });
    for (err, token) in [
        ("invalid_key", unsigned),
        ("invalid_key", with_secret),
        ("invalid_request", of(json!({ "alg": "ES256", "typ": "at+jwt", "kid": "ec-1" }))),
        ("invalid_key", of(json!({ "alg": "ES256", "typ": "secevent+jwt", "kid": "ec-1", "crit": ["b64"] }))),
        ("authentication_failed", of(json!({ "alg": "RS256", "typ": "secevent+jwt", "kid": "ec-1" }))),
        ("authentication_failed", of(json!({ "alg": "ES256", "typ": "secevent+jwt" }))),
        ("authentication_failed", Signer::OtherEc.token_with(
            &json!({ "alg": "ES256", "typ": "secevent+jwt", "kid": "ec-1", "jwk": Signer::OtherEc.jwk() }), &claims)),
        ("invalid_key", Signer::OtherEc.token_with(&header(Signer::OtherEc), &claims)),
    ] {
        assert_refused(&events_app.send(&token).await, err);
    }
    // Other tokens that the same keys have signed, with claims that users chose.
    for (typ, more) in [
        (
            json!("JWT"),
            json!({ "sub": "ada", "exp": now() + 3600, "azp": CLIENT_ID, "nonce": "n" }),
        ),
        (json!(null), json!({ "sub": "ada", "exp": now() + 3600 })),
        (json!("application/jwt"), json!({ "exp": now() + 3600 })),
        (json!("JWT"), json!({ "nonce": "n" })),
        (json!("JWT"), json!({ "azp": CLIENT_ID })),
        // Members in the tokens of Keycloak and Amazon Cognito, and signed data about a user.
        (json!("JWT"), json!({ "typ": "at+jwt" })),
        (json!("JWT"), json!({ "token_use": "access" })),
        (
            json!("JWT"),
            json!({ "sub": "ada", "email": "ada@example.com" }),
        ),
        (json!("AT+jwt"), json!({})),
        (json!("logout+jwt"), json!({})),
        (json!(["secevent+jwt"]), json!({})),
        (json!(""), json!({})),
    ] {
        let header = with(header(Signer::Ec), &json!({ "typ": typ }));
        let token = Signer::Ec.token_with(&header, &with(claims.clone(), &more));
        let answer = events_app.send(&token).await;
        assert_eq!(answer.status, 400, "{header} {more}: {}", answer.text);
        assert_refused(&answer, "invalid_request");
    }
    assert_eq!(
        (
            events_app.state("ada").await.sessions,
            events_app.known().await
        ),
        (1, 0)
    );
    // All keys of the provider, and all headers that senders use.
    for (signer, typ) in [
        (Signer::Ec, json!("secevent+jwt")),
        (Signer::Rsa, json!("application/SECEVENT+jwt")),
        (Signer::Rsa, json!("JWT")),
        (Signer::Ec, json!(null)),
    ] {
        events_app.sign_in("ada").await;
        let header = with(header(signer), &json!({ "typ": typ }));
        let token = signer.token_with(&header, &revocation("ada"));
        assert_eq!(events_app.send(&token).await.status, 202, "{header}");
        assert_eq!(events_app.state("ada").await.sessions, 0, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_security_event_is_refused_before_anything_is_asked() {
    let events_app = EventsApp::open().await;
    let sound = genuine(&revocation("ada"));
    for body in [
        "",
        "x",
        "a.b.c",
        "e30.e30",
        "{}",
        &format!("{sound}.e30"),
        &sound.replace('.', " "),
    ] {
        assert_refused(&events_app.send(body).await, "invalid_request");
    }
    for media_type in [
        None,
        Some("application/json"),
        Some("application/jwt"),
        Some("text/plain"),
    ] {
        let answer = events_app
            .app
            .send(Method::POST, EVENTS, media_type, sound.clone())
            .await;
        assert_refused(&answer, "invalid_request");
    }
    let upper = CLIENT_ID.to_uppercase();
    for aud in [
        json!("another-app.example"),
        json!([]),
        json!(null),
        json!(7),
        json!(upper),
        json!({ CLIENT_ID: 1 }),
    ] {
        let foreign = with(revocation("ada"), &json!({ "aud": aud }));
        assert_refused(
            &events_app.send(&genuine(&foreign)).await,
            "invalid_audience",
        );
    }
    assert_eq!(
        (events_app.keys.calls(), events_app.transmitter.calls()),
        (0, 0)
    );
    // An `id_token` signed with the same keys is not a message.
    for changes in [
        json!({ "events": null }),
        json!({ "events": {} }),
        json!({ "events": [] }),
        json!({ "events": { revoked(): "x" } }),
        json!({ "events": (0..17).map(|n| (format!("urn:{n}"), json!({}))).collect::<serde_json::Map<_, _>>() }),
        json!({ "iat": null }),
        json!({ "iat": "now" }),
        json!({ "jti": null }),
        json!({ "jti": 7 }),
        json!({ "jti": "" }),
        json!({ "jti": "x".repeat(256) }),
        json!({ "jti": "a\u{0}b" }),
    ] {
        let token = genuine(&with(revocation("ada"), &changes));
        assert_refused(&events_app.send(&token).await, "invalid_request");
    }
    assert_eq!(events_app.known().await, 0);
    let parameters = Some("Application/SecEvent+JWT; charset=utf-8");
    assert_eq!(
        events_app
            .app
            .send(Method::POST, EVENTS, parameters, sound)
            .await
            .status,
        202
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_providers_and_providers_without_keys_have_no_events_endpoint() {
    let events_app = EventsApp::open().await;
    let token = genuine(&revocation("ada"));
    for (name, error) in [("nobody", "provider_not_found"), ("third", "not_found")] {
        let path = format!("/api/v1/providers/{name}/events");
        let answer = events_app
            .app
            .send(Method::POST, &path, Some(MEDIA_TYPE), token.clone())
            .await;
        assert_problem(&answer, 404, error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_that_cannot_be_judged_or_stored() {
    let events_app = EventsApp::open().await;
    events_app.sign_in("ada").await;
    let token = genuine(&revocation("ada"));
    let sound = Behaviour::Json(
        json!({ "issuer": SENDER, "jwks_uri": format!("{}/keys", events_app.keys.url()) }),
    );
    events_app.transmitter.behave(Behaviour::status(503));
    assert_problem(&events_app.send(&token).await, 503, "provider_unavailable");
    // Renames the table, so that recording fails.
    events_app.transmitter.behave(sound);
    events_app
        .app
        .database
        .run("ALTER TABLE provider_events RENAME TO gone")
        .await;
    let mut answer = events_app.send(&token).await;
    while answer.error() == "provider_unavailable" {
        // The service remembers the failure for some seconds.
        tokio::task::yield_now().await;
        answer = events_app.send(&token).await;
    }
    assert_eq!(answer.status, 500, "{}", answer.text);
    assert_eq!(events_app.state("ada").await.sessions, 1);
    events_app
        .app
        .database
        .run("ALTER TABLE gone RENAME TO provider_events")
        .await;
    assert_eq!(events_app.send(&token).await.status, 202);
    assert_eq!(events_app.state("ada").await.sessions, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotated_keys_are_fetched_and_made_up_keys_cause_no_calls() {
    let events_app = EventsApp::open().await;
    events_app.tell(&revocation("ada")).await;
    events_app
        .keys
        .behave(Behaviour::Json(jwks(&[Signer::OtherEc.jwk()])));
    let rotated = Signer::OtherEc.token_with(&header(Signer::OtherEc), &revocation("ada"));
    assert_eq!(events_app.send(&rotated).await.status, 202);
    let calls = events_app.keys.calls();
    for number in 0..20 {
        let header =
            json!({ "alg": "ES256", "typ": "secevent+jwt", "kid": format!("made-up-{number}") });
        let token = Signer::OtherEc.token_with(&header, &revocation("ada"));
        assert_problem(&events_app.send(&token).await, 503, "provider_unavailable");
    }
    assert_eq!(events_app.keys.calls(), calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_ssf_metadata_events_are_verified_with_the_token_keys() {
    let keys = Provider::start().await;
    let metadata = Provider::start().await;
    keys.behave(Behaviour::Json(jwks(&[Signer::Ec.jwk()])));
    let issuer = format!("{}/realms/people", metadata.url());
    let jwks_uri = format!("{}/keys", keys.url());
    metadata.behave(Behaviour::Json(
        json!({ "issuer": issuer, "jwks_uri": jwks_uri }),
    ));
    metadata.behave_once(Behaviour::status(404));
    let settings = json!({ "preset": "oidc", "issuer": issuer, "client_id": CLIENT_ID });
    let app = App::start_with(|figment| figment.merge(("providers.in-house", settings))).await;
    let claims = json!({
        "iss": issuer, "aud": ["other", CLIENT_ID], "iat": now(), "jti": "j".repeat(255),
        "sub_id": { "format": "iss_sub", "iss": issuer, "sub": "ada" }, "events": { revoked(): {} },
    });
    let path = "/api/v1/providers/in-house/events";
    let answer = app
        .send(Method::POST, path, Some(MEDIA_TYPE), genuine(&claims))
        .await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let asked: Vec<_> = metadata
        .requests()
        .iter()
        .map(|request| request.path.clone())
        .collect();
    let expected = [
        "/.well-known/ssf-configuration/realms/people",
        "/realms/people/.well-known/openid-configuration",
    ];
    assert_eq!(asked, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_ssf_metadata_does_not_prevent_receiving_events() {
    let page = Behaviour::body(
        "text/html; charset=utf-8",
        "<!doctype html><title>Sign in</title>",
    );
    let elsewhere = Behaviour::Redirect {
        code: 302,
        to: "/login".into(),
    };
    for ssf in [None, Some(page), Some(elsewhere)] {
        let keys = Provider::start().await;
        let metadata = Provider::start().await;
        keys.behave(Behaviour::Json(jwks(&[Signer::Ec384.jwk()])));
        let issuer = metadata.url();
        // `jwks_uri` is optional in this document (OpenID Shared Signals Framework 1.0 §7.1).
        let ssf = ssf.unwrap_or_else(|| {
            let methods = json!([{ "delivery_method": 7 }]);
            Behaviour::Json(json!({
                "issuer": issuer, "configuration_endpoint": "", "status_endpoint": "/status",
                "authorization_schemes": {}, "delivery_methods_supported": methods,
            }))
        });
        metadata.behave(Behaviour::Json(
            json!({ "issuer": issuer, "jwks_uri": format!("{}/keys", keys.url()) }),
        ));
        metadata.behave_once(ssf.clone());
        let settings = json!({ "preset": "oidc", "issuer": issuer, "client_id": CLIENT_ID });
        let app = App::start_with(|figment| figment.merge(("providers.in-house", settings))).await;
        let claims = json!({
            "iss": issuer, "aud": CLIENT_ID, "iat": now(), "jti": "1",
            "sub_id": { "format": "iss_sub", "iss": issuer, "sub": "ada" }, "events": { revoked(): {} },
        });
        let token = Signer::Ec384.token_with(&header(Signer::Ec384), &claims);
        let answer = app
            .send(
                Method::POST,
                "/api/v1/providers/in-house/events",
                Some(MEDIA_TYPE),
                token,
            )
            .await;
        assert_eq!(answer.status, 202, "{ssf:?}: {}", answer.text);
    }
}
