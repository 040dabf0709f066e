//! Webhooks as operators and staff see and manage them.

use std::process::Output;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;
use vestibule::prune::prune;

use super::{change, emptied, environment, with_receivers};
use crate::support::app::{App, LIMITS};
use crate::support::cluster::Database;
use crate::support::description::Document;
use crate::support::people::ADMIN;
use crate::support::problem::assert_problem;
use crate::support::process::{eventually, run};
use crate::support::provider::{Behaviour, End};
use crate::support::receiver::{Receiver, SECRET};
use crate::support::staff_app::StaffApp;

const DUE: &str = "the message is due now; an instance sends it\n";
const ALL_DUE: &str = "messages due now: 1 of 1; an instance sends them\n";
const PARKED: &str = "SELECT count(*) FROM webhook_messages WHERE parked_at IS NOT NULL";

/// Runs the program in the release profile, with a webhook called `shop`.
async fn webhooks(database: &Database, url: &str, arguments: &[&str]) -> Output {
    let shop = environment(url);
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", &database.url),
        ("ROCKET_WEBHOOKS", &shop),
    ];
    run(&settings, &[&["webhooks"], arguments].concat()).await
}

/// Returns the only line that the program prints when it fails.
async fn refused(database: &Database, url: &str, arguments: &[&str]) -> String {
    let output = webhooks(database, url, arguments).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(1), 1),
        "{arguments:?}: {said}"
    );
    said
}

async fn printed(database: &Database, url: &str, arguments: &[&str]) -> String {
    let output = webhooks(database, url, arguments).await;
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Starts a service whose receiver has rejected one message permanently.
async fn parked() -> (App, Receiver) {
    let receiver = Receiver::start_with(|_| Behaviour::status(410)).await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    change(&app.database.pool, "user_disabled", Uuid::now_v7()).await;
    is_parked(&app.database).await;
    (app, receiver)
}

async fn is_parked(database: &Database) {
    database.until(PARKED, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_lists_what_is_parked_and_sends_it_again() {
    let (app, receiver) = parked().await;
    let id = receiver.received()[0].header("webhook-id").to_owned();
    let listed = printed(&app.database, &receiver.url, &["list"]).await;
    let host = receiver
        .url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/hooks")
        .unwrap();
    let (columns, listed) = listed.split_once('\n').unwrap();
    assert_eq!(columns, "name\thost\twaiting\toldest\tparked\tlast failure");
    assert_eq!(
        listed,
        format!("shop\t{host}\t0\t-\t1\tthe answer is 410: the receiver is gone\n")
    );
    let messages = printed(&app.database, &receiver.url, &["list", "shop"]).await;
    let (columns, messages) = messages.split_once('\n').unwrap();
    assert_eq!(
        columns,
        "message\ttype\tuser\tattempts\tnext attempt\tlast failure"
    );
    assert!(
        messages.starts_with(&format!("{id}\tuser.disabled\t")),
        "{messages}"
    );
    assert!(
        messages.ends_with("\t1\tparked\tthe answer is 410: the receiver is gone\n"),
        "{messages}"
    );

    let other = Uuid::now_v7().to_string();
    let said = refused(&app.database, &receiver.url, &["replay", "shop", &other]).await;
    assert!(said.contains("`shop` has no message"), "{said}");
    let output = webhooks(&app.database, &receiver.url, &["replay", "shop"]).await;
    assert_eq!(output.status.code(), Some(2), "one message, or all");
    for arguments in [&["list", "shpo"][..], &["replay", "shpo", "--all"]] {
        let said = refused(&app.database, &receiver.url, arguments).await;
        assert!(said.contains("`shpo` is not configured"), "{said}");
    }

    // The receiver still refuses the message: it is parked again.
    assert_eq!(
        printed(&app.database, &receiver.url, &["replay", "shop", &id]).await,
        DUE
    );
    receiver.received_all(2).await;
    is_parked(&app.database).await;
    receiver.behave(|_| Behaviour::status(200));
    assert_eq!(
        printed(&app.database, &receiver.url, &["replay", "shop", "--all"]).await,
        ALL_DUE
    );
    emptied(&app.database).await;
    assert_eq!(receiver.received()[2].header("webhook-id"), id);
    let recorded: Vec<(String, Value)> = app
        .database
        .all("SELECT actor, detail FROM events WHERE kind = 'webhook_replayed' ORDER BY id")
        .await;
    let by = |detail| ("the command line".to_owned(), detail);
    let one = |message: &str| by(json!({ "webhook": "shop", "message": message }));
    assert_eq!(
        recorded,
        [one(&other), one(&id), by(json!({ "webhook": "shop" }))]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_tries_a_receiver_without_a_service_or_a_database() {
    const NO: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 13\r\n\r\nbad\x1b[2Jsecret";
    let receiver = Receiver::start().await;
    let mut database = Database::gone();
    database.url = "postgres://vestibule@127.0.0.1:1/vestibule".into();
    let said = printed(&database, &receiver.url, &["test", "shop"]).await;
    assert_eq!(said, "accepted: the answer is 204\n");
    let message = receiver.received().remove(0);
    assert_eq!(message.kind(), "webhook.test");
    assert!(message.header("webhook-signature").starts_with("v1,"));

    receiver.behave(|_| Behaviour::Raw(NO.into(), End::Stay));
    let said = refused(&database, &receiver.url, &["test", "shop"]).await;
    assert_eq!(
        said,
        "vestibule: not accepted: the answer is 401: bad [2Jsecret\n"
    );
    let said = refused(&database, &receiver.url, &["test", "other"]).await;
    assert!(said.contains("`other` is not configured"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_tries_a_receiver_and_sends_again_what_it_refused() {
    let (app, receiver) = parked().await;
    let key = app.api_key("backend", KeyRole::Admin).await;
    let post = async |path: &str, body: &Value| {
        app.as_user(
            &key,
            Method::POST,
            &format!("/api/v1/admin/webhooks/{path}"),
            Some(body),
        )
        .await
    };
    let reason = json!({ "reason": "it is repaired" });
    let tested = post("shop/test", &json!({})).await;
    assert_eq!(
        (tested.status.as_u16(), &tested.json()["accepted"]),
        (200, &json!(false)),
        "{}",
        tested.text
    );
    assert_eq!(
        tested.json()["failure"],
        "the answer is 410: the receiver is gone"
    );
    receiver.behave(|_| Behaviour::status(204));
    let tested = post("shop/test", &json!({})).await;
    assert_eq!(tested.json(), json!({ "accepted": true, "failure": null }));
    let message = receiver.received().pop().unwrap().json();
    let document = Document::new();
    let content = &document.0["webhooks"]["webhook.test"]["post"]["requestBody"]["content"];
    document.assert_fits(
        "webhook.test",
        &content["application/json"]["schema"],
        &message,
    );
    assert_eq!(
        app.database.count(PARKED).await,
        1,
        "a test changes nothing"
    );

    for path in ["shpo/test", "shpo/replay"] {
        assert_problem(&post(path, &reason).await, 404, "not_found");
    }
    assert_eq!(
        post("shop/replay", &reason).await.json(),
        json!({ "due": 1, "of": 1 })
    );
    emptied(&app.database).await;
    let recorded: Vec<(String, Value)> = app
        .database
        .all("SELECT actor, detail FROM events WHERE kind = 'webhook_replayed'")
        .await;
    let detail = json!({ "reason": "it is repaired", "webhook": "shop" });
    assert_eq!(recorded, [("key:backend".to_owned(), detail)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_tests_a_receiver_and_resends_parked_messages() {
    let receiver = Receiver::start_with(|_| Behaviour::status(410)).await;
    let settings = json!({ "url": format!("{}?key=hush", receiver.url), "secret": SECRET });
    let staff_app =
        StaffApp::open_altered(|figment| figment.merge(("webhooks.shop", settings))).await;
    staff_app.appoint(ADMIN, Role::Admin).await;
    let database = &staff_app.app.database;
    let user = Uuid::now_v7();
    change(&database.pool, "user_disabled", user).await;
    is_parked(database).await;
    let mut admin = staff_app.signed_in(ADMIN).await;
    let page = admin.get("/admin/webhooks").await.text;
    for words in [
        "shop",
        "127.0.0.1:",
        "the answer is 410: the receiver is gone",
        "<span class=\"tone bad\">1</span>",
    ] {
        assert!(page.contains(words), "no {words}: {page}");
    }
    assert!(!page.contains("hush"), "{page}");
    let message: Uuid = database
        .value("SELECT message_id FROM webhook_messages")
        .await;
    let page = admin.get("/admin/webhooks/shop?state=parked").await.text;
    for words in [
        "user.disabled",
        &message.to_string(),
        &format!("href=\"/admin/users/{user}\""),
        "<span class=\"pill bad\">parked</span>",
        "the answer is 410: the receiver is gone",
    ] {
        assert!(page.contains(words), "no {words}: {page}");
    }
    assert_eq!(admin.get("/admin/webhooks/shpo").await.status, 404);
    let tested = admin.submit("/admin/webhooks/shop/test", &[]).await.text;
    assert!(
        tested.contains("shop has not accepted the test:</strong> the answer is 410"),
        "{tested}"
    );

    let replay = "/admin/webhooks/shop/replay";
    assert_eq!(
        admin.submit(replay, &[]).await.status,
        400,
        "it needs a reason"
    );
    let unknown = admin
        .submit("/admin/webhooks/shpo/replay", &[("reason", "again")])
        .await;
    assert_eq!(unknown.status, 404);
    assert_eq!(
        database
            .count("SELECT count(*) FROM events WHERE kind = 'webhook_replayed'")
            .await,
        0
    );
    assert_eq!(
        database.count(PARKED).await,
        1,
        "nor has the test changed anything"
    );
    for (id, sent) in [(Uuid::now_v7(), 0), (message, 1)] {
        let done = admin
            .confirm(&format!("{replay}?message={id}"), "it is repaired")
            .await;
        assert_eq!(
            done.header("location"),
            Some(&*format!("/admin/webhooks/shop?sent={sent}"))
        );
    }
    receiver.received_all(3).await;
    is_parked(database).await;
    receiver.behave(|_| Behaviour::status(200));
    let tested = admin.submit("/admin/webhooks/shop/test", &[]).await.text;
    assert!(tested.contains("shop has accepted the test."), "{tested}");
    let done = admin.confirm(replay, "it is repaired").await;
    assert_eq!(done.header("location"), Some("/admin/webhooks/shop?sent=1"));
    emptied(database).await;
    let page = admin.get("/admin/webhooks/shop?sent=1").await.text;
    assert!(
        page.contains("1 message is on the way.") && page.contains("No such message."),
        "{page}"
    );
    let audit = admin.get("/admin/audit?what=staff").await.text;
    for words in [
        "Let the messages of a webhook be sent again",
        "it is repaired",
        "shop",
    ] {
        assert!(audit.contains(words), "no {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_count_attempts_and_tell_how_long_the_queues_are() {
    let (app, _receiver) = parked().await;
    let text = eventually("the queues are read", async || {
        let text = app
            .send(reqwest::Method::GET, "/metrics", None, "")
            .await
            .text;
        text.contains("vestibule_webhook_parked{webhook=\"shop\"} 1")
            .then_some(text)
    })
    .await;
    for line in [
        "vestibule_webhook_deliveries_total{webhook=\"shop\",outcome=\"status_4xx\"} 1",
        "vestibule_webhook_deliveries_total{webhook=\"shop\",outcome=\"delivered\"} 0",
        "vestibule_webhook_oldest_seconds{webhook=\"shop\"} 0",
        "vestibule_webhook_waiting{webhook=\"shop\"} 0",
    ] {
        assert!(text.contains(line), "no {line}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clean_up_deletes_what_nobody_will_ask_for() {
    let database = Database::create().await;
    let pool = &database.pool;
    let ada = Uuid::now_v7();
    sqlx::query("INSERT INTO users (id) VALUES ($1)")
        .bind(ada)
        .execute(pool)
        .await
        .unwrap();
    run!(
        pool,
        "INSERT INTO webhooks VALUES ('shop', '{user.created}'), ('gone', '{}'), ('empty', '{}')"
    );
    for (webhook, user, kind, age, parked, stays) in [
        ("shop", ada, "user.updated", 60, false, true),
        ("shop", ada, "user.updated", 29, true, true),
        ("shop", ada, "user.updated", 31, true, false),
        ("shop", Uuid::now_v7(), "user.updated", 1, true, false),
        ("shop", Uuid::now_v7(), "user.deleted", 1, true, true),
        ("shop", Uuid::now_v7(), "user.merged", 1, true, true),
        ("shop", Uuid::now_v7(), "user.merged", 31, true, false),
        ("shop", ada, "user.merged", 1, true, true),
        ("shop", Uuid::now_v7(), "user.updated", 1, false, true),
        ("gone", ada, "user.updated", 29, false, true),
        ("gone", ada, "user.updated", 31, false, false),
    ] {
        sqlx::query(
            r#"INSERT INTO webhook_messages (webhook, message_id, user_id, type, facts, created_at, next_attempt_at, parked_at, failure)
             VALUES ($1, gen_random_uuid(), $2, $3, '{"user": {"name": "Ada"}, "kind": "users_merged"}', now() - $4 * interval '1 day', now(),
                     CASE WHEN $5 THEN now() - $4 * interval '1 day' END, $6)"#,
        )
        .bind(webhook)
        .bind(user)
        .bind(kind)
        .bind(age)
        .bind(parked)
        .bind(if stays { "stays" } else { "goes" })
        .execute(pool)
        .await
        .unwrap();
    }
    assert_eq!(
        prune(&database.service, LIMITS)
            .await
            .unwrap()
            .webhook_messages,
        4
    );
    assert_eq!(
        database
            .count("SELECT count(*) FROM webhook_messages WHERE failure = 'stays'")
            .await,
        7
    );
    let merged: Vec<(bool, Value)> = all!(
        pool,
        "SELECT user_id = $1, facts FROM webhook_messages WHERE type = 'user.merged' ORDER BY 1",
        ada
    );
    let without = json!({ "kind": "users_merged" });
    let expected = [
        (false, without),
        (
            true,
            json!({ "user": { "name": "Ada" }, "kind": "users_merged" }),
        ),
    ];
    assert_eq!(
        merged, expected,
        "that a user was merged stays, and what it told of one who is no more does not"
    );
    assert_eq!(
        database.count("SELECT count(*) FROM webhooks").await,
        2,
        "no rest of `empty`"
    );
}
