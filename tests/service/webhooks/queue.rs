//! The messages that changes queue.

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection, PgPool};
use strum::{VariantArray, VariantNames};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;
use vestibule::domain::message_type::MessageType;
use vestibule::events::EventKind;

use super::{SESSION, WAITING, change, event, settings};
use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::description::Document;
use crate::support::process::eventually;
use crate::support::receiver::{Receiver, queued};
use crate::support::token::claims;

/// Subscribes the receiver `shop` to all messages. Nothing is sent to it.
async fn subscribe(pool: &PgPool) {
    let types = <MessageType as VariantNames>::VARIANTS;
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('shop', $1)",
        types
    );
}

async fn subscribed() -> Database {
    let database = Database::create().await;
    subscribe(&database.pool).await;
    database
}

async fn user(pool: &PgPool) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("INSERT INTO users (id, name) VALUES ($1, 'Ada')")
        .bind(id)
        .execute(pool)
        .await
        .unwrap();
    id
}

/// Asserts that the message matches the API's description.
fn assert_described(message: &Value) {
    let document = Document::new();
    let kind = message["type"].as_str().unwrap();
    let post = &document.0["webhooks"][kind]["post"];
    let header = &post["parameters"][2]["name"];
    assert_eq!(
        (header, post["responses"]["2XX"].is_object()),
        (&json!("webhook-signature"), true),
        "{kind}"
    );
    document.assert_fits(
        kind,
        &post["requestBody"]["content"]["application/json"]["schema"],
        message,
    );
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn each_change_queues_one_message_that_names_what_changed() {
    let database = subscribed().await;
    let pool = &database.pool;
    let ada = user(pool).await;
    let other = Uuid::now_v7();
    let identity = Uuid::now_v7();
    run!(
        pool,
        "INSERT INTO identities (id, user_id, provider, subject, email) VALUES ($1, $2, 'idp', 'subject', 'ada@example.com')",
        identity,
        ada
    );
    let linked = json!({ "identity_id": identity });
    let gone = json!({ "identity_id": other });
    let held = json!({ "identity_id": identity, "by": other });
    let of = |identity: &Value| json!({ "identity": identity });
    let there = json!({ "id": identity, "provider": "idp", "subject": "subject", "email": "ada@example.com" });
    let unlinked = json!({ "id": other, "provider": "idp" });
    let unnamed = json!({ "id": null, "provider": "idp" });
    let merged = json!({ "from": other, "into": ada, "from_claims": {} });
    let moved = json!({ "identity_id": identity, "from": other, "reason": "they asked" });
    let went = json!({ "from": other, "to": ada, "identity": there });
    let asked = json!({ "reason": "they asked" });
    let sessions = |which: &str, id: Option<Uuid>| json!({ "sessions": which, "session_id": id });
    let one = sessions("one", Some(SESSION));
    let others = sessions("others", Some(SESSION));
    let all = sessions("all", None);
    let hijacked = json!({
        "identity_id": identity, "cause": "hijacking", "at": "2026-01-31T09:26:53Z", "sessions": 2
    });
    let address = json!({ "identity_id": identity, "at": "2026-01-31T09:26:53Z" });
    let reported = |event: &str, reason: Option<&str>, sessions: i32| {
        json!({
            "event": event, "reason": reason, "occurred_at": "2026-01-31T09:26:53Z",
            "identity": there, "suspended": false, "sessions_ended": sessions,
        })
    };
    let hijack = reported("account_disabled", Some("hijacking"), 2);
    let less = reported("email_disabled", None, 0);
    let null = Value::Null;
    let none = json!({});
    for (kind, reason, detail, message, expected) in [
        ("user_created", None, &null, "user.created", &none),
        (
            "user_updated",
            None,
            &json!({ "fields": ["name"] }),
            "user.updated",
            &none,
        ),
        (
            "email_lost",
            Some("email_proven"),
            &json!({ "to": other }),
            "user.updated",
            &none,
        ),
        ("claims_changed", None, &null, "user.updated", &none),
        ("user_disabled", None, &asked, "user.disabled", &none),
        ("user_enabled", None, &asked, "user.enabled", &none),
        (
            "user_deleted",
            None,
            &json!({ "session_count": 1 }),
            "user.deleted",
            &none,
        ),
        (
            "users_merged",
            None,
            &json!({ "from": other }),
            "user.merged",
            &merged,
        ),
        (
            "identity_linked",
            None,
            &linked,
            "identity.linked",
            &of(&there),
        ),
        (
            "identity_linked",
            Some("same_provider"),
            &null,
            "identity.linked",
            &of(&unnamed),
        ),
        (
            "identity_unlinked",
            None,
            &gone,
            "identity.unlinked",
            &of(&unlinked),
        ),
        ("identity_moved", None, &moved, "identity.moved", &went),
        ("identity_held", None, &held, "identity.held", &of(&there)),
        (
            "identity_released",
            None,
            &linked,
            "identity.released",
            &of(&there),
        ),
        ("signed_out", Some("local"), &null, "sessions.ended", &one),
        (
            "signed_out",
            Some("others"),
            &null,
            "sessions.ended",
            &others,
        ),
        ("signed_out", Some("global"), &null, "sessions.ended", &all),
        ("session_ended", None, &asked, "sessions.ended", &one),
        ("sessions_ended", None, &null, "sessions.ended", &all),
        (
            "refresh_token_replayed",
            None,
            &null,
            "security.refresh_token_replayed",
            &json!({ "session_id": SESSION }),
        ),
        (
            "provider_event",
            Some("account_disabled"),
            &hijacked,
            "security.provider_event",
            &hijack,
        ),
        (
            "provider_event",
            Some("email_disabled"),
            &address,
            "security.provider_event",
            &less,
        ),
    ] {
        let id = event(pool, kind, ada, reason, detail).await;
        let mut bodies = queued(pool).await;
        let rows: Vec<(String, Uuid, Uuid, Option<Uuid>, String, String)> = all!(
            pool,
            "DELETE FROM webhook_messages
             RETURNING webhook, message_id, user_id, other_id, type, webhook_messages::text"
        );
        let ([(webhook, message_id, user_id, other_id, named, row)], [body]) =
            (rows.as_slice(), bodies.as_mut_slice())
        else {
            panic!("{kind}: {rows:?}");
        };
        assert_eq!(
            (webhook.as_str(), *message_id, *user_id),
            ("shop", id, ada),
            "{kind}"
        );
        assert_eq!(
            *other_id,
            ["users_merged", "identity_moved"]
                .contains(&kind)
                .then_some(other),
            "{kind}"
        );
        // In this test the deleted user still exists, and an older release's event names no
        // identity.
        if kind != "user_deleted" && reason != Some("same_provider") {
            assert_described(body);
        }
        assert_eq!(
            (named.as_str(), &body["type"]),
            (message, &json!(message)),
            "{kind}"
        );
        let data = body["data"].as_object_mut().unwrap();
        assert_eq!(data.remove("user_id"), Some(json!(ada)), "{kind}");
        assert_eq!(data.remove("user").unwrap()["name"], "Ada", "{kind}");
        assert_eq!(*data, *expected.as_object().unwrap(), "{kind}");
        for secret in ["they asked", "192.0.2.7", "staff@example.com"] {
            assert!(!row.contains(secret), "{kind} tells {secret}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_event_queues_the_message_that_its_table_names() {
    let database = subscribed().await;
    let pool = &database.pool;
    let ada = user(pool).await;
    for kind in EventKind::VARIANTS {
        for reason in [None, Some("to_another")] {
            event(pool, kind.name(), ada, reason, &Value::Null).await;
            let queued: Vec<(String,)> = all!(pool, "DELETE FROM webhook_messages RETURNING type");
            let named = kind.message_type(reason);
            let named: Vec<_> = named.iter().map(|named| (named.to_string(),)).collect();
            assert_eq!(queued, named, "{kind:?} {reason:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_queued_without_a_receiver_or_a_user_change() {
    let database = Database::create().await;
    let pool = &database.pool;
    let ada = user(pool).await;
    change(pool, "user_created", ada).await;
    subscribe(pool).await;
    for (kind, reason) in [
        ("signed_in", None),
        ("sign_in_refused", Some("user_disabled")),
        ("link_refused", Some("identity_already_linked")),
        ("refresh_token_reissued", None),
        ("refresh_token_repeated", Some("another_client")),
        ("users_merged", Some("to_another")),
        ("identity_moved", Some("to_another")),
        ("user_viewed", None),
    ] {
        event(pool, kind, ada, reason, &json!({ "to": ada, "into": ada })).await;
    }
    assert_eq!(queued(pool).await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_shows_the_user_as_the_statement_leaves_them() {
    let app = App::start().await;
    let pool = &app.database.pool;
    subscribe(pool).await;
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    assert_eq!(
        app.sign_in(&claims("subject", "ada@example.com"))
            .await
            .outcome(),
        "signed_in"
    );
    let [message]: [Value; 1] = queued(pool)
        .await
        .try_into()
        .expect("a sign-in that changes nothing queues nothing");
    assert_eq!(message["type"], "user.created");
    assert_described(&message);
    let told = &message["data"]["user"];
    let user = &answer.json()["user"];
    for field in ["id", "email", "email_verified", "name", "picture"] {
        assert_eq!(told[field], user[field], "{field}");
    }
    // Only one of the two formats writes trailing zeros of microseconds.
    let time = |user: &Value| {
        OffsetDateTime::parse(user["created_at"].as_str().unwrap(), &Rfc3339).unwrap()
    };
    assert_eq!(time(told), time(user));
    assert_eq!(
        (&told["disabled_at"], &told["claims"]),
        (&Value::Null, &json!({}))
    );
    let identity = &answer.json()["identity"];
    let expected = json!([{
        "id": identity["id"], "provider": "idp", "subject": "subject", "email": "ada@example.com"
    }]);
    assert_eq!(told["identities"], expected);
    assert!(message["timestamp"].as_str().unwrap().ends_with('Z'));

    let deleted = app.delete(&answer.access_token(), "/api/v1/me").await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let message = queued(pool).await.pop().unwrap();
    assert_described(&message);
    let expected = json!({ "user_id": user["id"], "user": null });
    assert_eq!(
        (&message["type"], &message["data"]),
        (&json!("user.deleted"), &expected)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_does_not_happen_queues_nothing() {
    let database = subscribed().await;
    let mut transaction = database.pool.begin().await.unwrap();
    transaction
        .execute(insert("user_enabled", Uuid::now_v7()))
        .await
        .unwrap();
    let inside: i64 = value!(&mut *transaction, "SELECT count(*) FROM webhook_messages");
    assert_eq!(inside, 1);
    transaction.rollback().await.unwrap();
    assert_eq!(database.count(WAITING).await, 0);
}

/// Without this order, a message could get a lower number than a message that is already delivered.
#[tokio::test(flavor = "multi_thread")]
async fn messages_about_one_user_are_queued_in_commit_order() {
    let database = subscribed().await;
    let pool = &database.pool;
    let ada = Uuid::now_v7();
    let linus = Uuid::now_v7();
    let grace = Uuid::now_v7();
    let merged = format!(
        "INSERT INTO events (id, kind, user_id, detail)
         VALUES (gen_random_uuid(), 'users_merged', '{ada}', '{{\"from\": \"{linus}\"}}')"
    );
    let mut second = PgConnection::connect(&database.url).await.unwrap();
    second.execute("SET lock_timeout = '50ms'").await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    transaction
        .execute(sqlx::AssertSqlSafe(merged))
        .await
        .unwrap();
    for (user, waits) in [(ada, true), (linus, true), (grace, false)] {
        let done = second.execute(insert("user_enabled", user)).await;
        assert_eq!(done.is_err(), waits, "{done:?}");
    }
    transaction.commit().await.unwrap();
    second.execute(insert("user_enabled", linus)).await.unwrap();
    let kinds: Vec<_> = queued(pool)
        .await
        .iter()
        .map(|message| message["type"].clone())
        .collect();
    assert_eq!(kinds, ["user.merged", "user.enabled", "user.enabled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_behind_one_that_waits_for_hours_waits_as_long() {
    let database = subscribed().await;
    let pool = &database.pool;
    let ada = user(pool).await;
    let linus = user(pool).await;
    change(pool, "user_enabled", ada).await;
    run!(
        pool,
        "UPDATE webhook_messages SET attempts = 4, next_attempt_at = now() + interval '2 hours'"
    );
    event(pool, "users_merged", linus, None, &json!({ "from": ada })).await;
    change(pool, "user_disabled", linus).await;
    let waiting =
        "SELECT count(*) FROM webhook_messages WHERE next_attempt_at > now() + interval '1 hour'";
    assert_eq!(database.count(waiting).await, 3);
    change(pool, "user_disabled", user(pool).await).await;
    assert_eq!(database.count(waiting).await, 3, "others do not wait");
}

/// The service's time limit applies. A check that compares all messages with each other takes a
/// minute.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_messages_about_one_user_delay_no_others() {
    let database = Database::create().await;
    let ada = Uuid::now_v7();
    let linus = Uuid::now_v7();
    for (user, messages) in [(ada, 20_000), (linus, 1)] {
        run!(
            &database.pool,
            "INSERT INTO webhook_messages (webhook, message_id, user_id, type, facts, next_attempt_at)
             SELECT 'shop', gen_random_uuid(), $1, 'user.updated', '{}', now() FROM generate_series(1, $2)",
            user,
            messages
        );
    }
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    connection
        .execute("SET statement_timeout = '10s'")
        .await
        .unwrap();
    let claimed: Vec<Uuid> = values!(
        &mut connection,
        "SELECT user_id FROM claim_webhook_messages('shop', 16, 60)"
    );
    assert_eq!(claimed, [ada, linus]);
}

/// Returns a statement that writes an event, for use in a transaction.
fn insert(kind: &str, user: Uuid) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "INSERT INTO events (id, kind, user_id) VALUES (gen_random_uuid(), '{kind}', '{user}')"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_queued_during_its_predecessors_delivery_becomes_due() {
    let database = subscribed().await;
    let pool = &database.pool;
    let ada = user(pool).await;
    change(pool, "user_enabled", ada).await;
    let claimed: i64 = value!(
        pool,
        "SELECT id FROM claim_webhook_messages('shop', 16, 60)"
    );
    let mut transaction = database.pool.begin().await.unwrap();
    transaction
        .execute(insert("user_disabled", ada))
        .await
        .unwrap();
    let settle = async {
        run!(
            pool,
            "SELECT FROM settle_webhook_messages(ARRAY[$1], ARRAY[1::smallint], ARRAY[NULL], ARRAY[NULL::float8])",
            claimed
        );
    };
    let settled = std::sync::atomic::AtomicBool::new(false);
    let commit = async {
        eventually("it has waited, or needs not", async || {
            let waits = "SELECT count(*) FROM pg_stat_activity
                         WHERE datname = current_database() AND wait_event = 'advisory'";
            let over = settled.load(std::sync::atomic::Ordering::SeqCst)
                || database.count(waits).await == 1;
            over.then_some(())
        })
        .await;
        transaction.commit().await.unwrap();
    };
    let settle = async {
        settle.await;
        settled.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    tokio::join!(settle, commit);
    let due = "SELECT count(*) FROM webhook_messages WHERE type = 'user.disabled' AND next_attempt_at <= now()";
    assert_eq!(database.count(due).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_changes_no_index() {
    let database = subscribed().await;
    for _ in 0..20 {
        change(&database.pool, "user_enabled", Uuid::now_v7()).await;
    }
    let mut transaction = database.pool.begin().await.unwrap();
    run!(
        &mut *transaction,
        "SELECT FROM claim_webhook_messages('shop', 16, 60)"
    );
    let updates: Vec<(i64, i64)> = all!(
        &mut *transaction,
        "SELECT pg_stat_get_xact_tuples_updated(oid), pg_stat_get_xact_tuples_hot_updated(oid)
         FROM pg_class WHERE relname = 'webhook_messages'"
    );
    assert_eq!(updates, [(16, 16)], "all, and those that are heap-only");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_of_several_attempts_are_recorded_together_and_once() {
    let database = subscribed().await;
    let pool = &database.pool;
    for _ in ["delivered", "failed", "parked", "taken over"] {
        let user = Uuid::now_v7();
        change(pool, "user_disabled", user).await;
        change(pool, "user_enabled", user).await;
    }
    let claimed: Vec<i64> = values!(
        pool,
        "SELECT id FROM claim_webhook_messages('shop', 16, 60) ORDER BY id"
    );
    run!(
        pool,
        "UPDATE webhook_messages SET attempts = 2 WHERE id = $1",
        claimed[3]
    );
    for _ in ["an answer that is lost", "the next"] {
        run!(
            pool,
            "SELECT FROM settle_webhook_messages(
                 $1, '{1, 1, 1, 1}', '{NULL, failed, parked, taken over}', '{NULL, 3600, NULL, NULL}')",
            &claimed
        );
    }
    let left: Vec<(String, i16, Option<String>)> = all!(
        pool,
        "SELECT type, failures, CASE WHEN parked_at IS NOT NULL THEN 'parked' WHEN next_attempt_at <= now() THEN 'due'
                                     WHEN next_attempt_at < 'infinity' THEN 'later' END
         FROM webhook_messages ORDER BY id"
    );
    let left: Vec<_> = left
        .iter()
        .map(|(kind, failures, next)| (kind.as_str(), *failures, next.as_deref()))
        .collect();
    let expected = [
        ("user.enabled", 0, Some("due")),
        ("user.disabled", 1, Some("later")),
        ("user.enabled", 0, None),
        ("user.disabled", 1, Some("parked")),
        ("user.enabled", 0, Some("due")),
        ("user.disabled", 0, Some("due")),
        ("user.enabled", 0, None),
    ];
    assert_eq!(left, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_message_about_a_user_has_a_later_timestamp() {
    let database = subscribed().await;
    let pool = &database.pool;
    let ada = user(pool).await;
    let mut transaction = database.pool.begin().await.unwrap();
    transaction.execute("SELECT now()").await.unwrap();
    change(pool, "user_enabled", ada).await;
    transaction
        .execute(insert("user_disabled", ada))
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    let [first, second] = queued(pool).await.try_into().unwrap();
    assert_eq!(
        (&first["type"], &second["type"]),
        (&json!("user.enabled"), &json!("user.disabled"))
    );
    let time = |message: &Value| message["timestamp"].as_str().unwrap().to_owned();
    assert!(time(&first) < time(&second), "{first} {second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_messages_behind_pruned_ones_are_due_after_small_steps() {
    let database = Database::create().await;
    let receiver = Receiver::start().await;
    let messages =
        "INSERT INTO webhook_messages (webhook, message_id, user_id, type, facts, next_attempt_at)
                    SELECT 'shop', gen_random_uuid(), user_id, 'user.updated', '{}', next_attempt_at
                    FROM (SELECT gen_random_uuid() AS first) AS users, LATERAL (
                        SELECT first, now() + interval '1 hour'
                        UNION ALL SELECT first, 'infinity' FROM generate_series(1, 5000)
                        UNION ALL SELECT gen_random_uuid(), 'infinity' FROM generate_series(1, 5001)
                    ) AS messages (user_id, next_attempt_at)";
    for sql in [
        "INSERT INTO webhooks (name, events) VALUES ('shop', '{}')",
        messages,
    ] {
        sqlx::query(sql).execute(&database.pool).await.unwrap();
    }
    database.limit_changes("webhook_messages", 5000).await;
    let settings = settings(&receiver);
    let app = App::start_on(database, |figment| {
        figment.merge(("webhooks.shop", settings))
    })
    .await;
    // A message waits only behind a waiting first message of its user.
    let waiting = "SELECT count(*) FROM webhook_messages WHERE next_attempt_at = 'infinity'";
    app.database.until(waiting, 5000).await;
}
