//! A database whose host disappears without closing its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use rocket::futures::future::join_all;
use serde_json::json;
use sqlx::{Acquire, Executor};
use tokio::io::copy_bidirectional;
use tokio::sync::watch;
use vestibule::domain::api_key::KeyRole;
use vestibule::web::http::deadline::Limit;

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::problem::assert_problem;
use crate::support::process::until;
use crate::support::relay::Relay;
use crate::support::token::claims;

/// The size of the service's connection pool.
const PLACES: usize = 4;
/// The statement that changes a name.
const NAMING: &str = "^-- Sets the name ";

/// Opens a relay to the tests' PostgreSQL that counts the health checks of connections.
async fn asks(checks: &Arc<AtomicUsize>) -> Relay {
    let checks = checks.clone();
    Relay::watched(move |message| {
        let check = b"SELECT current_setting('transaction_read_only') = 'off' AND";
        checks.fetch_add(
            usize::from(message.contents().starts_with(check)),
            Ordering::SeqCst,
        );
        true
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pool_stays_ready_and_abandoned_requests_cost_no_checks() {
    const REQUESTS: usize = 20;
    let checks = Arc::new(AtomicUsize::new(0));
    let relay = asks(&checks).await;
    let app = App::start_altered(
        Database::create().await,
        |figment| {
            relay
                .behind(figment)
                .merge(("databases.vestibule.max_connections", 1))
        },
        |rocket| rocket.manage(Limit(Duration::from_secs(1))),
    )
    .await;
    let app = Arc::new(app);
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    let mut lock = app.database.pool.begin().await.unwrap();
    lock.execute("SELECT FROM users FOR UPDATE").await.unwrap();
    let naming = tokio::spawn({
        let app = app.clone();
        let token = token.clone();
        async move {
            let name = json!({ "name": "Ada" });
            app.as_user(&token, Method::PATCH, "/api/v1/me", Some(&name))
                .await
                .status
                .as_u16()
        }
    });
    app.database.until_waiting(1, NAMING).await;
    let ready = reqwest::get(format!("{}/readyz", app.url)).await.unwrap();
    let still = app.database.waiting(NAMING).await;
    assert_eq!(
        (ready.status().as_u16(), still),
        (200, 1),
        "{}",
        ready.text().await.unwrap()
    );
    assert_eq!(naming.await.unwrap(), 503, "it is given up");
    lock.rollback().await.unwrap();

    until("there is a connection", async || {
        app.get(&token, "/api/v1/me").await.status.is_success()
    })
    .await;
    // On a slow machine idle connections are checked as well.
    let mut counted = Vec::new();
    while counted.len() < 3 {
        let before = checks.load(Ordering::SeqCst);
        for _ in 0..REQUESTS {
            assert_eq!(app.get(&token, "/api/v1/me").await.status, 200);
        }
        counted.push(checks.load(Ordering::SeqCst) - before);
        if counted.last() < Some(&(REQUESTS / 2)) {
            return;
        }
    }
    panic!("{counted:?} checks for {REQUESTS} requests each");
}

/// A relay to the tests' PostgreSQL that can fall silent.
struct SilentRelay {
    inner: Relay,
    silence: watch::Sender<()>,
}

impl SilentRelay {
    async fn open() -> Self {
        let silence = watch::Sender::new(());
        let falls = silence.clone();
        let inner = Relay::open(move |mut client, mut server| {
            let mut silent = falls.subscribe();
            async move {
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    // Both ends stay open, but nothing passes any more.
                    Ok(()) = silent.changed() => std::future::pending().await,
                }
            }
        })
        .await;
        Self { inner, silence }
    }

    /// Silences the existing connections; new ones work.
    fn falls_silent(&self) {
        self.silence.send_replace(());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_replaced_in_the_pool() {
    let relay = SilentRelay::open().await;
    let app = App::start_with(|figment| {
        relay
            .inner
            .behind(figment)
            .merge(("databases.vestibule.max_connections", PLACES))
    })
    .await;
    let people: Vec<_> = (0..PLACES)
        .map(|n| claims(&format!("subject-{n}"), &format!("ada-{n}@example.com")))
        .collect();
    for person in &people {
        app.sign_in(person).await;
    }
    for silent in [true, false] {
        let mut other = app.database.pool.acquire().await.unwrap();
        let mut lock = other.begin().await.unwrap();
        lock.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
            .await
            .unwrap();
        let released = async {
            // The service's background work may wait for the table, too.
            app.database
                .until_waiting(PLACES.try_into().unwrap(), "^-- Signs in ")
                .await;
            if silent {
                relay.falls_silent();
            }
            lock.rollback().await.unwrap();
        };
        let (answers, ()) = tokio::join!(
            join_all(people.iter().map(|person| app.sign_in(person))),
            released
        );
        for answer in answers {
            if silent {
                assert_problem(&answer, 503, "service_unavailable");
            } else {
                assert_eq!(answer.outcome(), "signed_in", "{}", answer.text);
            }
        }
        until("it is ready", async || {
            let ready = reqwest::get(format!("{}/readyz", app.url)).await.unwrap();
            ready.status().is_success()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_that_fell_silent_leaves_the_pool() {
    let relay = SilentRelay::open().await;
    let app = App::start_with(|figment| relay.inner.behind(figment)).await;
    app.sign_in(&claims("ada", "ada@example.com")).await;
    relay.falls_silent();
    until("no connection of a lane is in use", async || {
        let metrics = reqwest::get(format!("{}/metrics", app.url))
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        metrics.contains(r#"vestibule_database_connections{pool="shared",state="used"} 0"#)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_only_once_for_an_unreachable_database() {
    const CONNECT: Duration = Duration::from_secs(6);
    let gone = watch::Sender::new(false);
    let goes = gone.clone();
    let relay = Relay::open(move |mut client, mut server| {
        let mut gone = goes.subscribe();
        async move {
            tokio::select! {
                _ = copy_bidirectional(&mut client, &mut server), if !*gone.borrow() => {}
                // Connections end, and new ones lead nowhere.
                Ok(()) = gone.changed() => {}
            }
        }
    })
    .await;
    let app = App::start_with(|figment| {
        relay
            .behind(figment)
            .merge(("databases.vestibule.connect_timeout", CONNECT.as_secs()))
    })
    .await;
    let token = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .refresh_token();
    gone.send_replace(true);
    let ask = async |number: u32| {
        let begun = Instant::now();
        let answer = if number.is_multiple_of(2) {
            app.sign_in(&claims(
                &format!("{number}"),
                &format!("{number}@example.com"),
            ))
            .await
        } else {
            app.refresh(&token).await
        };
        (answer.status.as_u16(), begun.elapsed())
    };
    // More requests than all lanes take at once.
    for (status, took) in join_all((0..300).map(ask)).await {
        assert_eq!(status, 503);
        assert!(took < 2 * CONNECT, "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_admin_lists_leave_a_connection_for_users() {
    let app =
        App::start_with(|figment| figment.merge(("databases.vestibule.max_connections", PLACES)))
            .await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let ada = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .access_token();
    let mut other = app.database.pool.acquire().await.unwrap();
    let mut lock = other.begin().await.unwrap();
    lock.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let lists = join_all((0..2 * PLACES).map(|_| app.get(&key, "/api/v1/admin/events")));
    let released = async {
        // One list waits in the connection that lists may use.
        app.database.until_waiting(1, "").await;
        let me = app.get(&ada, "/api/v1/me").await;
        assert_eq!(me.status, 200, "{}", me.text);
        lock.rollback().await.unwrap();
    };
    let (lists, ()) = tokio::join!(lists, released);
    assert!(lists.iter().any(|answer| answer.status == 200));
}
