//! A database whose machine is gone: it says nothing more, not even goodbye.

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::{Acquire, Executor};
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::app::{App, through};
use crate::support::cluster::cluster;
use crate::support::process::eventually;
use crate::support::token::claims;

/// Connections that the service may have.
const PLACES: usize = 4;
/// Those of them that wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
                       WHERE application_name = 'vestibule' AND datname = current_database() AND wait_event_type = 'Lock'";

/// A way to the tests' PostgreSQL that can fall silent.
struct Way {
    directory: PathBuf,
    silence: watch::Sender<()>,
}

impl Way {
    async fn open() -> Self {
        let directory = std::env::temp_dir().join(format!("vestibule-{}", Uuid::now_v7().simple()));
        std::fs::create_dir(&directory).unwrap();
        let server = cluster().await.socket_dir().join(".s.PGSQL.5432");
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        let silence = watch::Sender::new(());
        let falls = silence.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut server, mut silent) =
                    (UnixStream::connect(&server).await.unwrap(), falls.subscribe());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        // Both ends stay open, and nothing passes any more.
                        Ok(()) = silent.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { directory, silence }
    }

    /// From now on nothing passes on the connections that there are; new ones are as good as ever.
    fn falls_silent(&self) {
        self.silence.send_replace(());
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_on_which_nobody_answers_any_more_cost_no_place_in_the_pool() {
    let way = Way::open().await;
    let app = App::start_with(|figment| {
        through(&way.directory, figment).merge(("databases.vestibule.max_connections", PLACES))
    })
    .await;
    let app = Arc::new(app);
    let people: Vec<_> =
        (0..PLACES).map(|n| claims(&format!("subject-{n}"), &format!("ada-{n}@example.com"))).collect();
    for person in &people {
        app.sign_in(person).await;
    }
    for silent in [true, false] {
        let mut other = app.database.pool.acquire().await.unwrap();
        let mut lock = other.begin().await.unwrap();
        lock.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let mut requests = JoinSet::new();
        for person in people.clone() {
            let app = app.clone();
            requests.spawn(async move { app.sign_in(&person).await });
        }
        eventually("every connection waits for the lock", async || {
            (app.database.count(WAITING).await == i64::try_from(PLACES).unwrap()).then_some(())
        })
        .await;
        if silent {
            way.falls_silent();
        }
        lock.rollback().await.unwrap();
        for answer in requests.join_all().await {
            if silent {
                assert_eq!((answer.status.as_u16(), answer.error()), (503, "service_unavailable".into()));
                assert!(answer.header("retry-after").is_some());
            } else {
                assert_eq!(answer.outcome(), "signed_in", "{}", answer.text);
            }
        }
        eventually("it is ready", async || {
            let ready = reqwest::get(format!("{}/readyz", app.url)).await.unwrap();
            ready.status().is_success().then_some(())
        })
        .await;
    }
}
