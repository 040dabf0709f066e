//! Requests that a suspended identity is refused.

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::accounts::identities::Linked;
use vestibule::accounts::merging::Merge;
use vestibule::accounts::reauthentication::opened_within;
use vestibule::accounts::{identities, merging, users};
use vestibule::admin::changes::{Change, Outcome};
use vestibule::admin::staff::store::{Changed, reset};
use vestibule::clock;
use vestibule::domain::actor::{Actor, Author, Origin};
use vestibule::domain::claims::VerifiedClaims;
use vestibule::domain::staff::Role;
use vestibule::prune::{Pruned, prune};

use super::{
    EventsApp, MEDIA_TYPE, NAME, RISC, SENDER, State, account, genuine, message, transmitter,
};
use crate::support::app::{Answer, LIMITS};
use crate::support::problem::assert_problem;
use crate::support::provider::Provider;
use crate::support::signer::Signer;
use crate::support::staff_app::{Browser, StaffApp};
use crate::support::token::{CLIENT_ID, claims, now, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_identity_neither_signs_in_nor_proves_anything() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let mine = app.sign_in(&claims("ada", "ada@example.com")).await;
    let linked = events_app.sign_in("ada").await;
    assert_eq!(
        (linked.outcome().as_str(), linked.user_id()),
        ("linked", mine.user_id())
    );
    events_app.hijacked("ada").await;
    // With the known name, and with a new name, which takes a different statement.
    let renamed = with(account("ada"), &json!({ "name": "Eve" }));
    for claims in [account("ada"), renamed] {
        assert_problem(
            &app.sign_in_at(NAME, &claims).await,
            403,
            "identity_suspended",
        );
    }
    let events = "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND reason = 'identity_suspended' AND user_id IS NOT NULL";
    assert_eq!(app.database.count(events).await, 2);
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM identities WHERE name = 'Eve'")
            .await,
        0
    );
    assert_problem(
        &app.get(&linked.access_token(), "/api/v1/me").await,
        401,
        "invalid_access_token",
    );
    // Linking is refused also in a session of another identity.
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    assert_problem(
        &app.link(&token, NAME, &account("ada")).await,
        403,
        "identity_suspended",
    );
    app.age(3600.0).await;
    let proof = json!({ "provider": NAME, "id_token": app.token(&account("ada")) });
    let delete = json!({ "reauthentication": proof });
    let deleted = app
        .as_user(&token, Method::DELETE, "/api/v1/me", Some(&delete))
        .await;
    assert_problem(&deleted, 403, "identity_suspended");
    assert_eq!(app.get(&token, "/api/v1/me").await.status, 200);

    events_app.risc("account-enabled", "ada").await;
    assert_eq!(events_app.sign_in("ada").await.user_id(), mine.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_too_many_values_is_refused_unread() {
    let events_app = EventsApp::open().await;
    let message = |count: usize| {
        let claims = json!({ "iss": SENDER, "aud": CLIENT_ID, "iat": now(), "jti": "1", "pad": vec![0; count] });
        Signer::Rsa.token_with(&json!({ "alg": "RS256", "typ": "secevent+jwt" }), &claims)
    };
    for count in [600, 90_000] {
        let answer = events_app.send(&message(count)).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["err"]),
            (400, &json!("invalid_request")),
            "{count}"
        );
    }
    assert_eq!(
        (events_app.transmitter.calls(), events_app.keys.calls()),
        (0, 0)
    );
    events_app.send(&message(300)).await;
    assert_eq!(events_app.transmitter.calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_a_suspension_has_missed_changes_nothing() {
    let events_app = EventsApp::open().await;
    let pool = &events_app.app.database.pool;
    let ada = events_app.sign_in("ada").await;
    let grace = events_app.sign_in("grace").await;
    let [ada, grace] = [ada, grace].map(|answer| answer.user());
    events_app.hijacked("ada").await;
    // As if the session had been opened at the moment of the suspension.
    let session: uuid::Uuid = value!(
        pool,
        "UPDATE sessions SET ended_at = NULL WHERE ended_at IS NOT NULL RETURNING id"
    );
    let before = events_app.app.database.rows().await;
    let origin = Origin::default();
    assert_eq!(
        opened_within(&events_app.app.database.service, session, 600)
            .await
            .unwrap(),
        None
    );
    let named = users::set_name(
        &events_app.app.database.service,
        ada,
        session,
        Some("Eve"),
        &origin,
    )
    .await
    .unwrap();
    assert!(named.is_none(), "{named:?}");
    let claims = VerifiedClaims {
        subject: "eve".into(),
        email: None,
        email_verified: false,
        hosted_domain: None,
        name: None,
        picture: None,
        client_id: "client".into(),
        issued_at: clock::system().into(),
        for_first: true,
    };
    let linked = identities::link(
        &events_app.app.database.service,
        ada,
        session,
        "idp",
        &claims,
        false,
        &origin,
    )
    .await
    .unwrap();
    assert!(matches!(linked, Linked::NoUser), "{linked:?}");
    let both = merging::users(&events_app.app.database.service, &[ada, grace])
        .await
        .unwrap();
    let state = |id| both.iter().find(|user| user.id == id).unwrap();
    let by = Author::user(session, &origin);
    assert_eq!(
        merging::merge(
            &events_app.app.database.service,
            state(grace),
            state(ada),
            by
        )
        .await
        .unwrap(),
        Merge::NotPermitted
    );
    assert_eq!(events_app.app.database.rows().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hijacked_mailbox_links_nobody_at_another_provider() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let opened = events_app.sign_in("ada").await;
    events_app.hijacked("ada").await;
    let elsewhere = claims("eve", "ada@example.com");
    assert_problem(&app.sign_in(&elsewhere).await, 409, "link_required");
    assert_eq!(
        app.database.count("SELECT count(*) FROM identities").await,
        1
    );
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM sessions WHERE ended_at IS NULL")
            .await,
        0
    );
    // A deleted account proves nothing either: its address may have a new owner.
    events_app.risc("account-purged", "ada").await;
    let linked = app.sign_in(&elsewhere).await;
    assert_eq!(linked.outcome(), "created");
    assert_ne!(linked.user_id(), opened.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_identity_cannot_be_unlinked_or_remain_alone() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let own = claims("ada", "ada@example.com");
    app.sign_in(&own).await;
    let linked = events_app.sign_in("ada").await;
    events_app.hijacked("ada").await;
    let unlink = async |mine: &Answer, answer: &Answer| {
        let path = format!("/api/v1/me/identities/{}", answer.identity_id());
        app.delete(&mine.access_token(), &path).await
    };
    let mine = app.sign_in(&own).await;
    assert_problem(&unlink(&mine, &linked).await, 403, "identity_suspended");
    assert_problem(&events_app.sign_in("ada").await, 403, "identity_suspended");
    assert_problem(&unlink(&mine, &mine).await, 409, "last_identity");

    // The provider's reason can equal our own words for a deletion or a hold without being one.
    for reads_like in ["account_deleted", "held"] {
        let reason = json!({ "reason": reads_like });
        events_app
            .tell(&message(
                &format!("{RISC}/account-disabled"),
                "ada",
                &reason,
            ))
            .await;
        let mine = app.sign_in(&own).await;
        assert_problem(&unlink(&mine, &linked).await, 403, "identity_suspended");
    }

    // A deleted account cannot sign in, so the user may unlink it.
    events_app.risc("account-enabled", "ada").await;
    let by_its_owner = json!({ "initiating_entity": "user" });
    events_app
        .tell(&message(
            &format!("{RISC}/account-purged"),
            "ada",
            &by_its_owner,
        ))
        .await;
    let mine = app.sign_in(&own).await;
    assert_eq!(unlink(&mine, &linked).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_goes_with_the_identity_to_another_user() {
    let events_app = EventsApp::open().await;
    let app = &events_app.app;
    let early = with(account("ada"), &json!({ "iat": now() - 60 }));
    let ada = app.sign_in_at(NAME, &early).await.user();
    let grace = events_app.sign_in("grace").await.user();
    let linus = app
        .sign_in(&claims("linus", "linus@example.com"))
        .await
        .user();
    events_app.hijacked("ada").await;
    let identity: uuid::Uuid = app
        .database
        .value("SELECT id FROM identities WHERE subject = 'ada'")
        .await;
    let suspended = State {
        sessions: 0,
        suspended: true,
        why: Some("hijacking".into()),
    };
    for change in [
        Change::Move {
            identity,
            from: ada,
            to: grace,
        },
        Change::Merge {
            from: grace,
            into: linus,
        },
    ] {
        assert_eq!(
            app.by_staff(change).await,
            Some(Outcome::Done),
            "{change:?}"
        );
        assert_eq!(events_app.state("ada").await, suspended, "{change:?}");
    }
    assert_problem(&events_app.sign_in("ada").await, 403, "identity_suspended");
    events_app.risc("account-enabled", "ada").await;
    assert_problem(&app.sign_in_at(NAME, &early).await, 401, "token_expired");
    assert_eq!(events_app.sign_in("ada").await.user(), linus);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_ids_are_kept_longer_than_messages_are_accepted() {
    let events_app = EventsApp::open().await;
    events_app.risc("sessions-revoked", "ada").await;
    let pool = &events_app.app.database.pool;
    let age = "UPDATE provider_events SET received_at = received_at - $1 * interval '1 day'";
    for (days, provider_events) in [(89, 0), (1, 1)] {
        run!(pool, age, f64::from(days));
        let pruned = prune(&events_app.app.database.service, LIMITS)
            .await
            .unwrap();
        assert_eq!(
            pruned,
            Pruned {
                provider_events,
                ..Pruned::default()
            },
            "{days}"
        );
    }
}

/// Opens an app whose provider sends messages, with a member of staff, and the servers of keys and
/// metadata.
async fn staff_app() -> (StaffApp, [Provider; 2]) {
    let (keys, transmitter) = transmitter().await;
    let url = transmitter.url();
    let staff_app = StaffApp::open_altered(|figment| figment.merge(("idp.ssf_url", url))).await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    (staff_app, [keys, transmitter])
}

/// Sends the app an event about the named account.
async fn send_event(staff_app: &StaffApp, event: &str, named: &Value) {
    let claims = message(
        &format!("{RISC}/{event}"),
        "x",
        &json!({ "subject": named }),
    );
    let path = "/api/v1/providers/idp/events";
    let answer = staff_app
        .app
        .send(Method::POST, path, Some(MEDIA_TYPE), genuine(&claims))
        .await;
    assert_eq!(answer.status, 202, "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn hijacked_staff_are_locked_out_until_enabled_or_given_another_account() {
    let (staff_app, _publishers) = staff_app().await;
    let pool = &staff_app.app.database.pool;
    staff_app.appoint("grace@example.com", Role::Admin).await;
    let mut grace = staff_app.signed_in("grace@example.com").await;
    let mut ada = staff_app.signed_in("ada@example.com").await;
    let subject: String = value!(
        pool,
        "SELECT subject FROM staff WHERE email = 'ada@example.com'"
    );
    let account = json!({ "subject_type": "iss-sub", "iss": SENDER, "sub": subject });
    let refused = async || {
        let refused = Browser::new(&staff_app.app.url)
            .sign_in("ada@example.com")
            .await;
        assert_eq!(refused.status, 403);
        refused.text
    };
    assert_eq!(ada.get("/admin/users").await.status, 200);
    send_event(&staff_app, "account-disabled", &account).await;
    assert_eq!(
        ada.get("/admin/users").await.status,
        303,
        "her session has ended"
    );
    assert!(refused().await.contains("hijacked, disabled or deleted"));
    assert_eq!(grace.get("/admin/users").await.status, 200);
    // As if she had signed in at that moment.
    let late = "INSERT INTO staff_sessions (hash, staff_id) SELECT '\\x01', id FROM staff WHERE email = 'ada@example.com'";
    staff_app.app.database.run(late).await;
    send_event(&staff_app, "account-enabled", &account).await;
    assert_eq!(
        staff_app
            .app
            .database
            .count("SELECT count(*) FROM staff_sessions WHERE hash = '\\x01'")
            .await,
        0
    );
    assert_eq!(ada.get("/admin/users").await.status, 303, "it stays ended");
    staff_app.signed_in("ada@example.com").await;

    // A reset admits another account, but not the reported one.
    send_event(&staff_app, "account-disabled", &account).await;
    let by = Author {
        actor: Actor::COMMAND_LINE,
        reason: None,
        origin: &Origin::default(),
    };
    assert_eq!(
        reset(&staff_app.app.database.service, "ada@example.com", by)
            .await
            .unwrap(),
        Changed::Done
    );
    assert!(refused().await.contains("hijacked, disabled or deleted"));
    let other = [
        ("email", "ada@example.com"),
        ("sub", "another"),
        ("verified", "true"),
    ];
    let landed = Browser::new(&staff_app.app.url).sign_in_with(&other).await;
    assert_eq!(landed.status, 303, "{}", landed.text);
    assert_eq!(
        reset(&staff_app.app.database.service, "ada@example.com", by)
            .await
            .unwrap(),
        Changed::Done
    );
    assert!(refused().await.contains("hijacked, disabled or deleted"));
    send_event(&staff_app, "account-enabled", &account).await;
    staff_app.signed_in("ada@example.com").await;
    let events = "SELECT count(*) FROM events WHERE kind = 'staff_refused' AND reason = 'identity_suspended'";
    assert_eq!(staff_app.app.database.count(events).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_name_staff_by_email_lock_them_out_too() {
    let (staff_app, _publishers) = staff_app().await;
    let named = json!({ "subject_type": "email", "email": "Ada@example.com" });
    for is_user in [false, true] {
        let mut ada = staff_app.signed_in("ada@example.com").await;
        if is_user {
            let user = "WITH u AS (INSERT INTO users (id) VALUES (gen_random_uuid()) RETURNING id)
                        INSERT INTO identities (id, user_id, provider, subject, email, email_verified)
                        SELECT gen_random_uuid(), u.id, s.provider, s.subject, s.email, true FROM u, staff s";
            staff_app.app.database.run(user).await;
        }
        send_event(&staff_app, "account-disabled", &named).await;
        assert_eq!(ada.get("/admin/users").await.status, 303, "{is_user}");
        let refused = Browser::new(&staff_app.app.url)
            .sign_in("ada@example.com")
            .await;
        assert!(
            refused.text.contains("hijacked, disabled or deleted"),
            "{is_user}: {}",
            refused.text
        );
        send_event(&staff_app, "account-enabled", &named).await;
    }
}
