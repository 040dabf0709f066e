//! Delivery of messages: signed, in order, at least once.

use std::time::Duration;

use figment::Figment;
use reqwest::Method;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use uuid::Uuid;

use super::{
    WAITING, change, emptied, environment, event, pass, settings, with_receivers, with_shop,
};
use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process::{Process, free_port};
use crate::support::provider::Behaviour;
use crate::support::receiver::{Received, Receiver, SECRET};
use crate::support::token::claims;

/// Verifies a message as receivers do, with the reference library.
fn verify(secret: &str, messages: &Received) -> Result<(), standardwebhooks::WebhookError> {
    Webhook::new(secret)
        .unwrap()
        .verify(messages.body.as_bytes(), &messages.headers)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_library_accepts_each_message() {
    let receiver = Receiver::start().await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let signed_in = app.sign_in(&claims("subject", "ada@example.com")).await;
    app.as_user(
        &signed_in.access_token(),
        Method::POST,
        "/api/v1/auth/logout",
        None,
    )
    .await;
    let messages = receiver.received_all(2).await;
    let kinds: Vec<_> = messages.iter().map(Received::kind).collect();
    assert_eq!(kinds, ["user.created", "sessions.ended"]);
    for message in &messages {
        verify(SECRET, message).unwrap();
        assert!(verify("whsec_b3RoZXIgc2VjcmV0IG9mIHRoZSB0ZXN0cw==", message).is_err());
        let mut altered = message.clone();
        altered.body.push(' ');
        assert!(verify(SECRET, &altered).is_err());
        assert_eq!(message.line, "POST /hooks");
        assert_eq!(message.header("content-type"), "application/json");
        assert!(
            message.header("user-agent").starts_with("Vestibule/"),
            "{message:?}"
        );
        assert_eq!(message.user(), signed_in.user_id());
        for secret in [signed_in.access_token(), signed_in.refresh_token()] {
            assert!(!message.body.contains(&secret));
        }
    }
    emptied(&app.database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_secret_is_replaced_both_verify() {
    const NEW: &str = "whsec_dGhlIG5ldyB3ZWJob29rIHNlY3JldCBvZiB0ZXN0cw==";
    let receiver = Receiver::start().await;
    let app = with_shop(json!({ "url": receiver.url, "secret": [SECRET, NEW] })).await;
    app.sign_in(&claims("subject", "ada@example.com")).await;
    let messages = receiver.received_all(1).await;
    for secret in [SECRET, NEW] {
        verify(secret, &messages[0]).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_only_the_types_that_it_wants() {
    let receiver = Receiver::start().await;
    let settings = json!({ "url": receiver.url, "secret": SECRET, "events": ["user.deleted"] });
    let app = with_shop(settings).await;
    let signed_in = app.sign_in(&claims("subject", "ada@example.com")).await;
    app.delete(&signed_in.access_token(), "/api/v1/me").await;
    let messages = receiver.received_all(1).await;
    assert_eq!(messages[0].kind(), "user.deleted");
    assert_eq!(messages[0].json()["data"]["user"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_stay_ordered_per_user_and_users_are_independent() {
    let receiver = Receiver::start().await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let pool = &app.database.pool;
    let ada = Uuid::now_v7();
    let linus = Uuid::now_v7();
    receiver.behave(move |message| {
        Behaviour::status(if message.user() == ada.to_string() {
            500
        } else {
            204
        })
    });
    change(pool, "user_created", ada).await;
    receiver.received_all(1).await;
    change(pool, "user_disabled", ada).await;
    change(pool, "user_enabled", ada).await;
    event(pool, "users_merged", linus, None, &json!({ "from": ada })).await;
    change(pool, "user_disabled", linus).await;
    for _ in 0..20 {
        change(pool, "user_enabled", Uuid::now_v7()).await;
    }
    receiver.received_all(21).await;
    receiver.behave(|_| Behaviour::status(204));
    let before: Vec<_> = receiver.received().iter().map(Received::kind).collect();
    assert!(
        before
            .iter()
            .all(|kind| ["user.created", "user.enabled"].contains(&&**kind)),
        "{before:?}"
    );
    pass(pool).await;
    emptied(&app.database).await;
    let ada = ada.to_string();
    let linus = linus.to_string();
    let about = |message: &Received| [&ada, &linus].contains(&&message.user());
    let mut kinds: Vec<_> = receiver
        .received()
        .iter()
        .filter(|m| about(m))
        .map(Received::kind)
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "user.created",
            "user.disabled",
            "user.enabled",
            "user.merged",
            "user.disabled"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_send_each_message_once() {
    let receiver = Receiver::start().await;
    let first = with_receivers(&[("shop", &receiver)]).await;
    let shop = |figment: Figment| figment.merge(("webhooks.shop", settings(&receiver)));
    let _second = App::start_beside(&first.database, shop).await;
    let users: Vec<_> = (0..20).map(|_| Uuid::now_v7()).collect();
    for round in 0..10 {
        for user in &users {
            let kind = if round % 2 == 0 {
                "user_disabled"
            } else {
                "user_enabled"
            };
            change(&first.database.pool, kind, *user).await;
        }
    }
    emptied(&first.database).await;
    let messages = receiver.received();
    assert_eq!(messages.len(), 200);
    for user in users {
        let user = user.to_string();
        let kinds: Vec<_> = messages
            .iter()
            .filter(|m| m.user() == user)
            .map(Received::kind)
            .collect();
        assert_eq!(kinds, ["user.disabled", "user.enabled"].repeat(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_user_does_not_block_recording_other_deliveries() {
    let receiver = Receiver::start().await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let pool = &app.database.pool;
    let users: Vec<_> = (0..5).map(|_| Uuid::now_v7()).collect();
    let mut transaction = pool.begin().await.unwrap();
    run!(
        &mut *transaction,
        "SELECT FROM lock_webhook_users($1)",
        &users[..1]
    );
    run!(
        pool,
        "INSERT INTO webhook_messages (webhook, message_id, user_id, type, facts, next_attempt_at)
         SELECT 'shop', gen_random_uuid(), id, 'user.updated', '{}', now() FROM unnest($1::uuid[]) AS id",
        &users
    );
    // Deliveries for other users are recorded.
    app.database.until(WAITING, 1).await;
    let left: Uuid = value!(pool, "SELECT user_id FROM webhook_messages");
    assert_eq!(left, users[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_another_release_waits_and_delays_no_other_user() {
    let receiver = Receiver::start().await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let pool = &app.database.pool;
    for (kind, facts) in [
        ("user.renamed", "{}"),
        ("user.updated", r#"{"user": {"id": "Ada"}}"#),
        ("user.updated", r#"{"later": true}"#),
    ] {
        run!(
            pool,
            "INSERT INTO webhook_messages (webhook, message_id, user_id, type, facts, next_attempt_at)
             VALUES ('shop', gen_random_uuid(), gen_random_uuid(), $1, $2::text::jsonb, now())",
            kind,
            facts
        );
    }
    let waiting = "SELECT count(*) FROM webhook_messages WHERE failure LIKE 'another release %'";
    app.database.until(waiting, 2).await;
    app.database.until(WAITING, 2).await;
    let kinds: Vec<_> = receiver.received().iter().map(Received::kind).collect();
    assert_eq!(kinds, ["user.updated"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_on_its_way_is_awaited_at_the_shutdown() {
    let receiver =
        Receiver::start_with(|_| Behaviour::status(204).delayed(Duration::from_millis(700))).await;
    let mut app = with_receivers(&[("shop", &receiver)]).await;
    change(&app.database.pool, "user_enabled", Uuid::now_v7()).await;
    receiver.received_all(1).await;
    app.stop().await;
    assert_eq!(app.database.count(WAITING).await, 0);
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_flight_when_its_instance_dies_is_resent() {
    let receiver = Receiver::start_with(|_| Behaviour::NEVER_ANSWER).await;
    let database = Database::create().await;
    let webhooks = environment(&receiver.url);
    let settings = [("ROCKET_WEBHOOKS", webhooks.as_str())];
    let start = || {
        Process::start(
            free_port(),
            &database.url,
            "http://127.0.0.1:1/tokeninfo",
            &settings,
        )
    };
    let killed = start();
    killed.answers("/readyz", 200).await;
    let ada = Uuid::now_v7();
    let id = |message: &Received| message.header("webhook-id").to_owned();
    change(&database.pool, "user_disabled", ada).await;
    change(&database.pool, "user_enabled", ada).await;
    receiver.received_all(1).await;
    drop(killed);
    receiver.behave(|_| Behaviour::status(204));
    let successor = start();
    successor.answers("/readyz", 200).await;
    assert_eq!(database.count(WAITING).await, 2);
    // The lease ends.
    database
        .run("UPDATE webhook_messages SET leased_until = now() WHERE attempts > 0")
        .await;
    let messages = receiver.received_all(3).await;
    emptied(&database).await;
    let kinds: Vec<_> = messages.iter().map(Received::kind).collect();
    assert_eq!(kinds, ["user.disabled", "user.disabled", "user.enabled"]);
    assert_eq!(
        id(&messages[0]),
        id(&messages[1]),
        "a duplicate has the same id"
    );
    assert_ne!(id(&messages[1]), id(&messages[2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn undelivered_messages_wait_until_their_receiver_is_configured_again() {
    let receiver = Receiver::start_with(|_| Behaviour::status(503)).await;
    let mut app = with_receivers(&[("shop", &receiver)]).await;
    change(&app.database.pool, "user_disabled", Uuid::now_v7()).await;
    receiver.received_all(1).await;
    app.stop().await;
    let app = App::start_on(app.release(), |figment| figment).await;
    change(&app.database.pool, "user_enabled", Uuid::now_v7()).await;
    assert_eq!(
        app.database.count(WAITING).await,
        1,
        "nothing is queued for a receiver without settings"
    );
    let mut app = app;
    app.stop().await;
    receiver.behave(|_| Behaviour::status(200));
    let shop = |figment: Figment| figment.merge(("webhooks.shop", settings(&receiver)));
    let app = App::start_on(app.release(), shop).await;
    pass(&app.database.pool).await;
    emptied(&app.database).await;
    assert_eq!(receiver.received().len(), 2);
}
