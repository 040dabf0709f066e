//! The feed of events, for backends that poll.

use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor, PgPool};
use uuid::Uuid;
use vestibule::admin::api::store::events_after;
use vestibule::domain::api_key::KeyRole;
use vestibule::events::counts::catch_up;

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::token::claims;

const WRITERS: u32 = 8;
/// The number of events of each writer.
const EVENTS: u32 = 150;

/// Returns SQL for an id that is `seconds` seconds old.
fn id_of(seconds: u32) -> String {
    format!(
        "(lpad(to_hex(((extract(epoch FROM clock_timestamp()) - {seconds}) * 1000)::bigint), 12, '0')
          || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"
    )
}

async fn read(app: &App, key: &str, query: &str) -> (Vec<Value>, String) {
    let answer = app.get(key, &format!("/api/v1/admin/events?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let next = answer.json()["next"].as_str().unwrap().to_owned();
    (answer.json()["events"].as_array().unwrap().clone(), next)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_serves_events_after_a_minute_and_continues_at_cursors() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let nil = Uuid::nil().to_string();
    assert_eq!(
        read(&app, &key, "").await,
        (vec![], nil.clone()),
        "it is seconds old"
    );
    let now = Uuid::now_v7().to_string();
    assert_eq!(
        read(&app, &key, &format!("after={now}")).await,
        (vec![], now.clone())
    );

    let age = format!("UPDATE events SET id = {}", id_of(61));
    sqlx::query(AssertSqlSafe(age))
        .execute(&app.database.pool)
        .await
        .unwrap();
    let (events, next) = read(&app, &key, "").await;
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert!(
        kinds.contains(&"user_created") && kinds.contains(&"api_key_added"),
        "{kinds:?}"
    );
    assert_eq!(events.last().unwrap()["id"], next);
    let created = events
        .iter()
        .find(|event| event["kind"] == "user_created")
        .unwrap();
    assert_eq!(
        (&created["user_id"], &created["provider"]),
        (&ada.user_id().into(), &"idp".into())
    );
    assert_eq!(
        read(&app, &key, &format!("after={next}")).await,
        (vec![], next.clone())
    );
    let (one, first) = read(&app, &key, "limit=1").await;
    assert_eq!((one.len(), &one[0]), (1, &events[0]));
    assert_eq!(
        read(&app, &key, &format!("after={first}")).await.0,
        events[1..]
    );
    assert_eq!(
        read(&app, &key, "since=2020-01-31T00:00:00Z").await.0,
        events
    );
    assert_eq!(
        read(&app, &key, "since=2120-01-31T00:00:00%2B01:00")
            .await
            .0,
        Vec::<Value>::new()
    );
}

/// The event's id is almost a minute old when its transaction begins, older than in any real
/// request.
#[tokio::test(flavor = "multi_thread")]
async fn the_feed_waits_for_transactions_longer_than_a_minute() {
    use sqlx::Connection;
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let pool = &app.database.pool;
    let written = |request: &str, seconds| {
        AssertSqlSafe(format!(
            "INSERT INTO events (id, kind, request_id) VALUES ({}, 'tested', '{request}')",
            id_of(seconds)
        ))
    };
    let mut slow = sqlx::PgConnection::connect(&app.database.url)
        .await
        .unwrap();
    let mut transaction = slow.begin().await.unwrap();
    transaction.execute(written("first", 59)).await.unwrap();
    pool.execute(written("second", 58)).await.unwrap();
    let later = Instant::now() + Duration::from_secs(3);
    eventually("both are a minute old", async || {
        (Instant::now() > later).then_some(())
    })
    .await;
    let tested = async || {
        let (events, _) = read(&app, &key, "").await;
        let tested = events.into_iter().filter(|event| event["kind"] == "tested");
        tested
            .map(|event| event["request_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(tested().await, [] as [&str; 0], "the first is not passed");
    transaction.commit().await.unwrap();
    assert_eq!(tested().await, ["first", "second"]);
}

/// Writers draw ids before they commit, in any order. The ids are 57 seconds old when drawn, so
/// that the feed passes them three seconds later.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_reading_behind_eight_writers_gets_each_event_once() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let write = format!(
        "WITH drawn AS MATERIALIZED (SELECT {} AS id, pg_sleep(random() * 0.05))
         INSERT INTO events (id, kind, request_id) SELECT id, 'tested', $1 FROM drawn",
        id_of(57)
    );
    let writers = (0..WRITERS).map(|writer| {
        let url = app.database.url.clone();
        let write = write.clone();
        tokio::spawn(async move {
            use sqlx::Connection;
            let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
            for event in 0..EVENTS {
                let number = format!("{writer}-{event}");
                run!(&mut connection, AssertSqlSafe(write.clone()), number);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut seen = Vec::<Value>::new();
    let mut after = Uuid::nil().to_string();
    let mut deadline = None;
    loop {
        let (events, next) = read(&app, &key, &format!("after={after}&limit=9")).await;
        assert!(events.len() <= 9);
        seen.extend(events.into_iter().filter(|event| event["kind"] == "tested"));
        after = next;
        if deadline.is_none() && writers.iter().all(tokio::task::JoinHandle::is_finished) {
            deadline = Some(Instant::now() + Duration::from_secs(20));
        }
        let all = usize::try_from(WRITERS * EVENTS).unwrap();
        if seen.len() >= all || deadline.is_some_and(|deadline| Instant::now() > deadline) {
            break;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let ids: Vec<_> = seen
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    assert!(
        ids.is_sorted_by(|one, next| one < next),
        "each once, in the order of their ids"
    );
    let numbers: std::collections::BTreeSet<_> = seen
        .iter()
        .map(|event| event["request_id"].as_str())
        .collect();
    assert_eq!(
        numbers.len(),
        usize::try_from(WRITERS * EVENTS).unwrap(),
        "none is missing"
    );
}

/// A database role that, unlike a superuser, sees little of other roles' transactions.
struct Serving {
    name: String,
    pool: PgPool,
    service: vestibule::database::Database,
}

impl Serving {
    async fn create(database: &Database) -> Self {
        let name = format!("serving_{}", Uuid::now_v7().simple());
        for sql in [
            "CREATE ROLE serving LOGIN",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO serving",
        ] {
            run!(&database.pool, AssertSqlSafe(sql.replace("serving", &name)));
        }
        let mut url = url::Url::parse(&database.url).unwrap();
        url.set_username(&name).unwrap();
        let pool = PgPool::connect(url.as_str()).await.unwrap();
        Self {
            name,
            service: pool.clone().into(),
            pool,
        }
    }

    async fn remove(self, database: &Database) {
        self.pool.close().await;
        for sql in ["DROP OWNED BY serving", "DROP ROLE serving"] {
            run!(
                &database.pool,
                AssertSqlSafe(sql.replace("serving", &self.name))
            );
        }
    }

    async fn tested(&self) -> Vec<String> {
        let events = events_after(&self.service, Uuid::nil(), 500).await.unwrap();
        let tested = events.into_iter().filter(|event| event.kind == "tested");
        tested.map(|event| event.request_id.unwrap()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_waits_for_a_late_commit_of_another_role() {
    let database = Database::create().await;
    let serving = Serving::create(&database).await;
    let written = |request: &str, seconds| {
        AssertSqlSafe(format!(
            "INSERT INTO events (id, kind, provider, request_id) VALUES ({}, 'tested', 'idp', '{request}')",
            id_of(seconds)
        ))
    };
    database
        .pool
        .execute(written("settled", 3600))
        .await
        .unwrap();
    assert_eq!(serving.tested().await, ["settled"]);
    let mut slow = database.pool.begin().await.unwrap();
    slow.execute(written("first", 59)).await.unwrap();
    database.pool.execute(written("second", 58)).await.unwrap();
    let later = Instant::now() + Duration::from_secs(3);
    eventually("both are a minute old", async || {
        (Instant::now() > later).then_some(())
    })
    .await;
    // Repeated reads do not move the mark past the slow transaction.
    for _ in 0..3 {
        assert_eq!(
            serving.tested().await,
            ["settled"],
            "the first is not passed"
        );
    }
    slow.commit().await.unwrap();
    assert_eq!(serving.tested().await, ["settled", "first", "second"]);
    serving.remove(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_another_role_commits_late_is_counted() {
    let database = Database::create().await;
    let serving = Serving::create(&database).await;
    let counted = async || {
        catch_up(&serving.service).await.unwrap();
        database
            .count("SELECT coalesce(sum(count), 0)::bigint FROM event_counts")
            .await
    };
    assert_eq!(counted().await, 0);
    // The event's id is almost ten minutes old when its transaction begins, so that the test need
    // not wait.
    let late = AssertSqlSafe(format!(
        "INSERT INTO events (id, kind, provider) VALUES ({}, 'signed_in', 'idp')",
        id_of(599)
    ));
    let mut slow = database.pool.begin().await.unwrap();
    slow.execute(late).await.unwrap();
    let next = AssertSqlSafe(format!(
        "INSERT INTO events (id, kind, provider) VALUES ({}, 'signed_in', 'idp')",
        id_of(598)
    ));
    database.pool.execute(next).await.unwrap();
    let later = Instant::now() + Duration::from_secs(3);
    eventually("both would be counted", async || {
        (Instant::now() > later).then_some(())
    })
    .await;
    assert_eq!(counted().await, 0);
    slow.commit().await.unwrap();
    assert_eq!(counted().await, 2);
    serving.remove(&database).await;
}
