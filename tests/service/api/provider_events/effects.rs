//! Each provider event, genuine and forged, and its effect on sessions, identity, user and audit.

use serde_json::{Value, json};

use reqwest::Method;
use strum::VariantNames;
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};
use vestibule::domain::message_type::MessageType;

use super::{
    CAEP, EventsApp, ISSUER, NAME, OAUTH, RISC, State, account, assert_refused, genuine, header,
    message,
};
use crate::support::cluster::Database;
use crate::support::problem::assert_problem;
use crate::support::receiver::queued;
use crate::support::signer::Signer;
use crate::support::token::{at, claims, now, with};

/// An event's type, its further members, and its effects.
struct Case {
    event: String,
    more: Value,
    /// The reason in the audit.
    kind: &'static str,
    cause: Option<&'static str>,
    ends: bool,
    suspends: bool,
}

/// An event's effects: it ends the sessions, it suspends the identity.
const NOTHING: [bool; 2] = [false, false];
const ENDS: [bool; 2] = [true, false];
const SUSPENDS: [bool; 2] = [true, true];

fn cases() -> impl Iterator<Item = Case> {
    let none = json!({});
    let reason = |word: &str| json!({ "reason": word });
    let of = |word: &str| json!({ "credential_type": word });
    let credential =
        |kind: &str, change: &str| json!({ "credential_type": kind, "change_type": change });
    let required = "account-credential-change-required";
    let changed = "credential-change";
    let renamed = json!({ "new-value": "new@example.com" });
    let by_policy = json!({ "initiating_entity": "policy" });
    let cases = [
        (
            RISC,
            "sessions-revoked",
            none.clone(),
            "sessions_revoked",
            None,
            ENDS,
        ),
        (
            OAUTH,
            "tokens-revoked",
            none.clone(),
            "tokens_revoked",
            None,
            ENDS,
        ),
        (
            RISC,
            "account-disabled",
            reason("hijacking"),
            "account_disabled",
            Some("hijacking"),
            SUSPENDS,
        ),
        (
            RISC,
            "account-disabled",
            none.clone(),
            "account_disabled",
            None,
            SUSPENDS,
        ),
        (
            RISC,
            "account-disabled",
            reason("bulk-account"),
            "account_disabled",
            Some("bulk-account"),
            NOTHING,
        ),
        (
            RISC,
            "account-enabled",
            none.clone(),
            "account_enabled",
            None,
            NOTHING,
        ),
        (
            RISC,
            "account-purged",
            none.clone(),
            "account_purged",
            None,
            SUSPENDS,
        ),
        (
            RISC,
            required,
            none.clone(),
            "credential_change",
            Some("required"),
            ENDS,
        ),
        (
            RISC,
            "credential-compromise",
            of("password"),
            "credential_change",
            Some("compromised"),
            ENDS,
        ),
        (
            RISC,
            "identifier-changed",
            renamed,
            "identifier_changed",
            None,
            NOTHING,
        ),
        (
            RISC,
            "identifier-recycled",
            none,
            "identifier_changed",
            Some("recycled"),
            NOTHING,
        ),
        (
            CAEP,
            "session-revoked",
            by_policy,
            "sessions_revoked",
            Some("policy"),
            ENDS,
        ),
        (
            CAEP,
            changed,
            credential("password", "update"),
            "credential_change",
            Some("update"),
            ENDS,
        ),
        (
            CAEP,
            changed,
            credential("fido2-roaming", "create"),
            "credential_change",
            Some("create"),
            NOTHING,
        ),
    ];
    cases
        .into_iter()
        .map(|(family, name, more, kind, cause, [ends, suspends])| Case {
            event: format!("{family}/{name}"),
            more,
            kind,
            cause,
            ends,
            suspends,
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_genuine_event_takes_effect_once_and_forged_ones_never() {
    let events_app = EventsApp::open().await;
    for (number, case) in cases().enumerate() {
        let subject = format!("ada-{number}");
        let what = format!("{} {}", case.event, case.more);
        let opened = events_app.sign_in(&subject).await;
        let user = opened.user();
        let claims = message(&case.event, &subject, &case.more);
        let before = (
            events_app.state(&subject).await,
            events_app.recorded().await.len(),
            events_app.known().await,
        );
        assert_eq!(
            before.0,
            State {
                sessions: 1,
                suspended: false,
                why: None
            },
            "{what}"
        );

        // Messages with another key, issuer or app, too early, too late or too large change
        // nothing.
        let with = |name: &str, value: Value| {
            let mut claims = claims.clone();
            claims[name] = value;
            genuine(&claims)
        };
        let forged = Signer::OtherEc.token_with(&header(Signer::Ec), &claims);
        for (err, token) in [
            ("authentication_failed", forged),
            (
                "invalid_issuer",
                with("iss", json!("https://evil.example/")),
            ),
            (
                "invalid_audience",
                with("aud", json!("another-app.example")),
            ),
            ("invalid_request", with("iat", json!(now() + 600))),
            (
                "invalid_request",
                with("iat", json!(now() - 31 * 24 * 60 * 60)),
            ),
            ("invalid_request", with("jti", json!(null))),
        ] {
            assert_refused(&events_app.send(&token).await, err);
        }
        let oversized = events_app
            .send(&with("filler", json!("x".repeat(256 * 1024))))
            .await;
        assert_problem(&oversized, 413, "payload_too_large");
        let after = (
            events_app.state(&subject).await,
            events_app.recorded().await.len(),
            events_app.known().await,
        );
        assert_eq!(after, before, "{what}");

        // A message about an unknown account is acknowledged and recorded, and changes nothing.
        events_app
            .tell(&message(&case.event, "nobody", &case.more))
            .await;
        let recorded = events_app.recorded().await;
        let (kind, whose, detail) = recorded.last().unwrap();
        assert_eq!(
            (kind.as_str(), *whose, detail.get("identity_id")),
            (case.kind, None, None),
            "{what}"
        );
        assert_eq!(events_app.state(&subject).await, before.0, "{what}");

        // A genuine message, then its replay.
        for round in ["genuine", "replayed"] {
            events_app.tell(&claims).await;
            let expected = State {
                sessions: i64::from(!case.ends),
                suspended: case.suspends,
                why: case
                    .suspends
                    .then(|| case.cause.unwrap_or(case.kind).to_owned()),
            };
            assert_eq!(events_app.state(&subject).await, expected, "{what} {round}");
            let recorded = events_app.recorded().await;
            assert_eq!(recorded.len(), before.1 + 2, "{what} {round}");
            let (kind, whose, detail) = recorded.last().unwrap();
            assert_eq!(
                (kind.as_str(), *whose),
                (case.kind, Some(user)),
                "{what} {round}"
            );
            assert_eq!(detail["cause"], json!(case.cause), "{what} {round}");
            assert_eq!(
                detail["identity_id"],
                opened.json()["identity"]["id"],
                "{what} {round}"
            );
            let ended = detail["sessions"].as_i64().unwrap_or_default();
            assert_eq!(ended, i64::from(case.ends), "{what}");
        }
        // The user remains unchanged; only the identity decides whether they can sign in again.
        let refreshed = events_app.app.refresh(&opened.refresh_token()).await;
        assert_eq!(
            refreshed.status,
            if case.ends { 401 } else { 200 },
            "{what}"
        );
        let again = events_app.sign_in(&subject).await;
        if case.suspends {
            assert_problem(&again, 403, "identity_suspended");
        } else {
            assert_eq!(again.user_id(), opened.user_id(), "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_and_an_unknown_event_are_acknowledged_and_do_nothing() {
    let events_app = EventsApp::open().await;
    events_app.sign_in("ada").await;
    for event in [
        format!("{RISC}/verification"),
        "https://schemas.openid.net/secevent/ssf/event-type/verification".into(),
        format!("{CAEP}/device-compliance-change"),
        "https://events.example/unheard-of".into(),
    ] {
        events_app
            .tell(&message(&event, "ada", &json!({ "state": "a state" })))
            .await;
    }
    let recorded = events_app.recorded().await;
    let kinds: Vec<_> = recorded
        .iter()
        .map(|(kind, whose, _)| (kind.as_str(), *whose))
        .collect();
    assert_eq!(kinds, [("verification", None), ("verification", None)]);
    assert_eq!(
        events_app.state("ada").await,
        State {
            sessions: 1,
            suspended: false,
            why: None
        }
    );
    assert_eq!(events_app.known().await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_message_affects_neither_later_sessions_nor_later_messages() {
    let events_app = EventsApp::open().await;
    let old = events_app.sign_in("ada").await;
    events_app.app.age(7200.0).await;
    let new = events_app.sign_in("ada").await;
    let told = |event: &str, ago: i64| {
        let mut claims = message(&format!("{RISC}/{event}"), "ada", &json!({}));
        claims["iat"] = json!(now() - ago);
        claims
    };
    events_app.tell(&told("sessions-revoked", 3600)).await;
    assert_eq!(
        events_app.app.refresh(&old.refresh_token()).await.status,
        401
    );
    let new = events_app.app.refresh(&new.refresh_token()).await;
    assert_eq!(new.status, 200, "it was opened afterwards");

    // The event with the later time counts, in any order of arrival.
    events_app.tell(&told("account-enabled", 60)).await;
    assert_eq!(
        events_app.app.refresh(&new.refresh_token()).await.status,
        200,
        "nothing was suspended"
    );
    events_app.tell(&told("account-disabled", 120)).await;
    assert!(
        !events_app.state("ada").await.suspended,
        "it is enabled again since"
    );
    events_app.tell(&told("account-disabled", 30)).await;
    assert!(events_app.state("ada").await.suspended);
    events_app.tell(&told("account-enabled", 40)).await;
    assert!(
        events_app.state("ada").await.suspended,
        "it is disabled again since"
    );
    let sessions = events_app.state("ada").await.sessions;
    assert_eq!(
        sessions, 0,
        "no session of a hijacked account stays, not even a later one"
    );
    events_app.tell(&told("account-enabled", 20)).await;
    assert_eq!(
        events_app.state("ada").await,
        State {
            sessions: 0,
            suspended: false,
            why: None
        }
    );
    assert_eq!(events_app.sign_in("ada").await.outcome(), "signed_in");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_counts_from_its_own_time_not_its_arrival() {
    let events_app = EventsApp::open().await;
    let opened = events_app.sign_in("ada").await;
    events_app.app.age(60.0).await;
    let revoked = format!("{CAEP}/session-revoked");
    let before = now() - 120;
    for (more, toe) in [
        (json!({ "event_timestamp": before }), json!(null)),
        (json!({ "event_timestamp": before * 1000 }), json!(null)),
        (json!({}), json!(before)),
    ] {
        let mut claims = message(&revoked, "ada", &more);
        claims["toe"] = toe;
        events_app.tell(&claims).await;
        assert_eq!(events_app.state("ada").await.sessions, 1, "{claims}");
    }
    events_app
        .tell(&message(
            &revoked,
            "ada",
            &json!({ "event_timestamp": now() + 9_999 }),
        ))
        .await;
    assert_eq!(
        events_app.app.refresh(&opened.refresh_token()).await.status,
        401
    );
    let later = events_app.sign_in("ada").await;
    assert_eq!(
        events_app.app.refresh(&later.refresh_token()).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_ends_its_identitys_sessions_and_hijacking_all_the_users() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let ada = events_app.sign_in("ada").await;
    let also = claims("ada-1", "ada@example.com");
    let linked = app.link(&ada.access_token(), "idp", &also).await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    let other = app.sign_in(&also).await;
    let stranger = events_app.sign_in("grace").await;
    app.database
        .run("UPDATE identities SET joined_at = joined_at - interval '8 days'")
        .await;
    app.age(60.0).await;
    events_app.risc("sessions-revoked", "ada").await;
    assert_eq!(app.refresh(&ada.refresh_token()).await.status, 401);
    for answer in [&other, &stranger] {
        assert_eq!(app.refresh(&answer.refresh_token()).await.status, 200);
    }
    events_app.hijacked("ada").await;
    for (answer, status) in [(&other, 401), (&stranger, 200)] {
        assert_eq!(app.refresh(&answer.refresh_token()).await.status, status);
    }
    assert_eq!(app.sign_in(&also).await.user_id(), ada.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_issued_before_a_revocation_neither_sign_in_nor_prove() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let mine = app.sign_in(&claims("ada", "ada@example.com")).await;
    let early = |subject: &str| with(account(subject), &json!({ "iat": now() - 60 }));
    let ada = early("ada");
    let grace = early("grace");
    assert_eq!(app.sign_in_at(NAME, &ada).await.outcome(), "linked");
    assert_eq!(app.sign_in_at(NAME, &grace).await.outcome(), "created");
    let revoked = format!("{RISC}/sessions-revoked");
    for subject in ["ada", "grace"] {
        events_app
            .tell(&message(&revoked, subject, &json!({})))
            .await;
    }
    // A late report of an earlier event does not undo this one.
    events_app
        .tell(&with(
            message(&revoked, "ada", &json!({})),
            &json!({ "iat": now() - 3600 }),
        ))
        .await;
    let refused = app.sign_in_at(NAME, &ada).await;
    assert_problem(&refused, 401, "token_expired");
    assert!(
        refused.text.contains("ended the account's sessions"),
        "{}",
        refused.text
    );
    let events = "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND reason = 'token_expired' AND user_id IS NOT NULL";
    assert_eq!(app.database.count(events).await, 1);
    assert_eq!(events_app.state("ada").await.sessions, 0);

    let token = mine.access_token();
    assert_problem(&app.link(&token, NAME, &ada).await, 422, "token_expired");
    assert_problem(&app.merge(&token, NAME, &grace).await, 422, "token_expired");
    app.age(3600.0).await;
    let proof = json!({ "reauthentication": { "provider": NAME, "id_token": app.token(&ada) } });
    let deleted = app
        .as_user(&token, Method::DELETE, "/api/v1/me", Some(&proof))
        .await;
    assert_problem(&deleted, 422, "token_expired");

    assert_eq!(events_app.sign_in("ada").await.outcome(), "signed_in");
    assert_problem(&app.sign_in_at(NAME, &ada).await, 401, "token_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recycled_address_becomes_unverified_and_free_for_its_next_owner() {
    let events_app = EventsApp::open().await;
    for (subject, named) in [
        ("ada", json!({})),
        (
            "grace",
            json!({ "subject": { "subject_type": "email", "email": "grace@example.com" } }),
        ),
    ] {
        let former = events_app.sign_in(subject).await;
        events_app
            .tell(&message(
                &format!("{RISC}/identifier-recycled"),
                subject,
                &named,
            ))
            .await;
        let updated: Vec<Value> = values!(
            &events_app.app.database.pool,
            "SELECT detail FROM events WHERE kind = 'user_updated' AND user_id = $1::uuid",
            former.user_id()
        );
        assert_eq!(
            updated,
            [json!({ "fields": ["email_verified"] })],
            "{subject}"
        );
        let same_address = json!({ "email": format!("{subject}@example.com") });
        let owner = with(account(&format!("{subject}-2")), &same_address);
        let owner = events_app.app.sign_in_at(NAME, &owner).await;
        assert_eq!(owner.outcome(), "created", "{}", owner.text);
        let former = events_app
            .app
            .get(&former.access_token(), "/api/v1/me")
            .await
            .json();
        assert_ne!(former["id"], owner.user_id().as_str());
        assert_eq!(former["email"], json!(null));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_reaches_each_provider_name_of_its_issuer() {
    let events_app = EventsApp::open_with(Database::create().await, |figment| {
        figment.merge(("providers.third.issuers", ["https://third.example", ISSUER]))
    })
    .await;
    let app = &events_app.app;
    // One account under two provider names, and a stranger with the same subject at another issuer.
    let second = events_app.sign_in("ada").await;
    let elsewhere = || with(account("ada"), &json!({ "email": "ada@elsewhere.example" }));
    let third = app.sign_in_at("third", &elsewhere()).await;
    let stranger = app
        .sign_in_at("fourth", &at("fourth", "ada", "stranger@example.com"))
        .await;
    for answer in [&second, &third, &stranger] {
        assert_eq!(answer.outcome(), "created", "{}", answer.text);
    }
    run!(
        &app.database.pool,
        "INSERT INTO staff (id, email, role, provider, subject)
         VALUES (gen_random_uuid(), 'ada@staff.example', 'admin', 'third', 'ada')"
    );
    let claims = message(
        &format!("{RISC}/account-disabled"),
        "ada",
        &json!({ "reason": "hijacking" }),
    );
    for round in ["genuine", "replayed"] {
        events_app.tell(&claims).await;
        for answer in [&second, &third] {
            assert_eq!(
                app.refresh(&answer.refresh_token()).await.status,
                401,
                "{round}"
            );
            let recorded: i64 = value!(
                &app.database.pool,
                "SELECT count(*) FROM events WHERE kind = 'provider_event' AND user_id = $1",
                answer.user()
            );
            assert_eq!(recorded, 1, "{round}");
        }
        assert_problem(&events_app.sign_in("ada").await, 403, "identity_suspended");
        assert_problem(
            &app.sign_in_at("third", &elsewhere()).await,
            403,
            "identity_suspended",
        );
        let members = "SELECT count(*) FROM staff WHERE suspended_at IS NOT NULL";
        assert_eq!(app.database.count(members).await, 1, "{round}");
    }
    assert_eq!(app.refresh(&stranger.refresh_token()).await.status, 200);
    events_app.risc("account-enabled", "ada").await;
    assert_eq!(events_app.sign_in("ada").await.user_id(), second.user_id());
    assert_eq!(
        app.sign_in_at("third", &elsewhere()).await.user_id(),
        third.user_id()
    );
    // A verification event concerns no account.
    events_app
        .tell(&message(&format!("{RISC}/verification"), "ada", &json!({})))
        .await;
    let tests = "SELECT count(*) FROM events WHERE reason = 'verification'";
    assert_eq!(app.database.count(tests).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn holding_and_releasing_an_identity_are_events_with_webhooks() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let pool = &events_app.app.database.pool;
    let types = <MessageType as VariantNames>::VARIANTS;
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('shop', $1)",
        types
    );
    let ada = events_app.sign_in("ada").await;
    let linked = app
        .link(
            &ada.access_token(),
            "idp",
            &claims("hijacker", "evil@example.com"),
        )
        .await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    run!(pool, "DELETE FROM webhook_messages");
    events_app.hijacked("ada").await;
    let held: Uuid = value!(pool, "SELECT id FROM identities WHERE held_at IS NOT NULL");
    let release = Change::Release {
        identity: held,
        user: ada.user(),
    };
    assert_eq!(app.by_staff(release).await, Some(Outcome::Done));

    let recorded: Vec<(String, Uuid, String, Value)> = all!(
        pool,
        "SELECT kind, user_id, provider, detail - 'reason' FROM events
         WHERE kind IN ('identity_held', 'identity_released') ORDER BY id"
    );
    let user = ada.user();
    let [holding, releasing] = &recorded[..] else {
        panic!("{recorded:?}")
    };
    let detail = json!({ "identity_id": held, "by": ada.identity_id() });
    assert_eq!(
        *holding,
        ("identity_held".into(), user, "idp".into(), detail)
    );
    let detail = json!({ "identity_id": held });
    assert_eq!(
        *releasing,
        ("identity_released".into(), user, "idp".into(), detail)
    );

    let messages = queued(pool).await;
    let kinds: Vec<_> = messages.iter().map(|message| &message["type"]).collect();
    assert_eq!(
        kinds,
        [
            "security.provider_event",
            "identity.held",
            "identity.released"
        ]
    );
    for message in &messages[1..] {
        let identity = json!({
            "id": held, "provider": "idp", "subject": "hijacker", "email": "evil@example.com",
        });
        assert_eq!(message["data"]["identity"], identity);
    }
}
