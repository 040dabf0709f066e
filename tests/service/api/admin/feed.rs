//! The feed of events, for a backend that would rather poll.

use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::AssertSqlSafe;
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::App;
use crate::support::process::eventually;
use crate::support::token::claims;

const WRITERS: u32 = 8;
/// What each of them writes.
const EVENTS: u32 = 150;

/// SQL for an id of that many seconds ago.
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
async fn an_event_is_in_the_feed_once_it_is_a_minute_old_and_the_place_is_kept() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let nil = Uuid::nil().to_string();
    assert_eq!(read(&app, &key, "").await, (vec![], nil.clone()), "it is seconds old");
    let now = Uuid::now_v7().to_string();
    assert_eq!(read(&app, &key, &format!("after={now}")).await, (vec![], now.clone()));

    let age = format!("UPDATE events SET id = {}", id_of(61));
    sqlx::query(AssertSqlSafe(age)).execute(&app.database.pool).await.unwrap();
    let (events, next) = read(&app, &key, "").await;
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"user_created") && kinds.contains(&"api_key_added"), "{kinds:?}");
    assert_eq!(events.last().unwrap()["id"], next);
    let created = events.iter().find(|event| event["kind"] == "user_created").unwrap();
    assert_eq!((&created["user_id"], &created["provider"]), (&ada.user_id().into(), &"idp".into()));
    assert_eq!(read(&app, &key, &format!("after={next}")).await, (vec![], next.clone()));
    let (one, first) = read(&app, &key, "limit=1").await;
    assert_eq!((one.len(), &one[0]), (1, &events[0]));
    assert_eq!(read(&app, &key, &format!("after={first}")).await.0, events[1..]);
    assert_eq!(read(&app, &key, "since=2020-01-31T00:00:00Z").await.0, events);
    assert_eq!(read(&app, &key, "since=2120-01-31T00:00:00%2B01:00").await.0, Vec::<Value>::new());
}

/// Its id is almost a minute old when its transaction begins; that of a request is younger.
#[tokio::test(flavor = "multi_thread")]
async fn the_feed_waits_for_a_commit_that_takes_longer_than_a_minute() {
    use sqlx::{Connection, Executor};
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let pool = &app.database.pool;
    let written = |request: &str, seconds| {
        AssertSqlSafe(format!(
            "INSERT INTO events (id, kind, request_id) VALUES ({}, 'tested', '{request}')",
            id_of(seconds)
        ))
    };
    let mut slow = sqlx::PgConnection::connect(&app.database.url).await.unwrap();
    let mut transaction = slow.begin().await.unwrap();
    transaction.execute(written("first", 59)).await.unwrap();
    pool.execute(written("second", 58)).await.unwrap();
    let later = Instant::now() + Duration::from_secs(3);
    eventually("both are a minute old", async || (Instant::now() > later).then_some(())).await;
    let tested = async || {
        let (events, _) = read(&app, &key, "").await;
        let tested = events.into_iter().filter(|event| event["kind"] == "tested");
        tested.map(|event| event["request_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tested().await, [] as [&str; 0], "the first is not passed");
    transaction.commit().await.unwrap();
    assert_eq!(tested().await, ["first", "second"]);
}

/// Ids are drawn before their events are committed, in any order. These are 57 seconds old when they are drawn, so that three
/// seconds later the feed has passed them.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_follows_eight_writers_misses_nothing_and_reads_nothing_twice() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let write = format!(
        "WITH drawn AS MATERIALIZED (SELECT {} AS id, pg_sleep(random() * 0.05))
         INSERT INTO events (id, kind, request_id) SELECT id, 'tested', $1 FROM drawn",
        id_of(57)
    );
    let writers = (0..WRITERS).map(|writer| {
        let (url, write) = (app.database.url.clone(), write.clone());
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
    let (mut seen, mut after) = (Vec::<Value>::new(), Uuid::nil().to_string());
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
    let ids: Vec<_> = seen.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "each once, in the order of their ids");
    let numbers: std::collections::BTreeSet<_> =
        seen.iter().map(|event| event["request_id"].as_str()).collect();
    assert_eq!(numbers.len(), usize::try_from(WRITERS * EVENTS).unwrap(), "none is missing");
}
