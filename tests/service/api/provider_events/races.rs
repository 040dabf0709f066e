//! Messages that arrive at the same time.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use sqlx::Executor;

use super::{EventsApp, RISC, genuine, message};
use crate::support::process::until;
use crate::support::race::{at_once, rounds};
use crate::support::token::now;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_arrives_twice_at_once_is_applied_once() {
    let events_app = EventsApp::open().await;
    for round in 0..rounds() {
        let opened = events_app.sign_in("ada").await;
        assert_eq!(
            opened.status.as_u16() / 100,
            2,
            "round {round}: {}",
            opened.text
        );
        let token = genuine(&message(
            &format!("{RISC}/sessions-revoked"),
            "ada",
            &json!({}),
        ));
        let (one, other) = at_once(events_app.send(&token), events_app.send(&token)).await;
        assert_eq!([one.status, other.status], [202; 2], "round {round}");
    }
    let recorded = events_app.recorded().await;
    assert_eq!(
        (recorded.len(), events_app.known().await),
        (rounds(), i64::try_from(rounds()).unwrap())
    );
    assert!(
        recorded.iter().all(|(.., detail)| detail["sessions"] == 1),
        "each ended the round's session, once"
    );
    assert_eq!(events_app.state("ada").await.sessions, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_outlives_a_suspension_whoever_signs_in_meanwhile() {
    let events_app = EventsApp::open().await;
    events_app.sign_in("ada").await;
    for round in 0..rounds() {
        let disabled = format!("{RISC}/account-disabled");
        let enabled = format!("{RISC}/account-enabled");
        let report = message(&disabled, "ada", &json!({ "reason": "hijacking" }));
        let clients = async { tokio::join!(events_app.sign_in("ada"), events_app.sign_in("ada")) };
        let (clients, ()) = at_once(clients, events_app.tell(&report)).await;
        for answer in [clients.0, clients.1] {
            if answer.status == 200 {
                let refreshed = events_app.app.refresh(&answer.refresh_token()).await;
                assert_eq!(refreshed.status, 401, "round {round}");
                let me = events_app
                    .app
                    .get(&answer.access_token(), "/api/v1/me")
                    .await;
                assert_eq!(me.status, 401, "round {round}");
            } else {
                assert_eq!(answer.error(), "identity_suspended", "round {round}");
            }
        }
        events_app.tell(&message(&enabled, "ada", &json!({}))).await;
        assert_eq!(
            events_app.state("ada").await.sessions,
            0,
            "round {round}: lifting it revives none"
        );
    }
}

/// The statements of a single sign-in, and of a report.
const WAITING: &str = "^-- (Signs in one identity|Applies a report)";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opened_during_a_revocation_is_ended() {
    let events_app = Arc::new(EventsApp::open().await);
    events_app.sign_in("ada").await;
    let opened = loop {
        let mut lock = events_app.app.database.pool.begin().await.unwrap();
        let held = "SELECT pg_advisory_xact_lock(1936028531, uuid_hash(id) & 4095) FROM identities FOR UPDATE";
        lock.execute(held).await.unwrap();
        let signing_in = tokio::spawn({
            let events_app = events_app.clone();
            async move { events_app.sign_in("ada").await }
        });
        events_app.app.database.until_waiting(1, WAITING).await;
        // A report's time has whole seconds.
        let second = now();
        until("the next second", async || now() > second).await;
        let report = message(&format!("{RISC}/sessions-revoked"), "ada", &json!({}));
        let telling = tokio::spawn({
            let events_app = events_app.clone();
            async move { events_app.tell(&report).await }
        });
        if !signing_in.is_finished() {
            events_app.app.database.until_waiting(2, WAITING).await;
        }
        lock.rollback().await.unwrap();
        telling.await.unwrap();
        let opened = signing_in.await.unwrap();
        // The sign-in may have exceeded its time limit.
        if opened.status == 200 {
            break opened;
        }
    };
    let app = &events_app.app;
    let token = opened.access_token();
    assert_eq!(
        events_app.state("ada").await.sessions,
        1,
        "the report did not see it"
    );
    assert_eq!(
        app.refresh(&opened.refresh_token()).await.json()["reason"],
        "session_ended"
    );
    assert_eq!(
        app.get(&token, "/api/v1/me").await.json()["reason"],
        "session_ended"
    );
    let name = json!({ "name": "Eve" });
    assert_eq!(
        app.as_user(&token, Method::PATCH, "/api/v1/me", Some(&name))
            .await
            .status,
        401
    );
    assert_eq!(app.delete(&token, "/api/v1/me").await.status, 401);
    let later = events_app.sign_in("ada").await;
    assert_eq!(
        app.get(&later.access_token(), "/api/v1/me").await.status,
        200
    );
    let sessions = app
        .get(&later.access_token(), "/api/v1/me/sessions")
        .await
        .json();
    assert_eq!(
        sessions["sessions"].as_array().unwrap().len(),
        1,
        "{sessions}"
    );
}
