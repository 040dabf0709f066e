//! `kill -9` of the service and of its database under a mixed load: whatever was acknowledged is
//! still there, and nothing is half written.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use vestibule::dev::postgres::{Options, Postgres};

use crate::support::process::{Process, free_port};
use crate::support::provider::Provider;
use crate::support::token;

const KILLS: usize = 20;
const CLIENTS: usize = 8;
/// Acknowledged answers before the next kill.
const ANSWERS: usize = 60;

/// A client that keeps what was acknowledged. Without an answer it does not know, and tries again.
async fn post(client: &reqwest::Client, url: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let request =
        client.post(format!("{url}{path}")).header("Content-Type", "application/json").body(body.to_string());
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, serde_json::from_str(&answer.text().await.ok()?).ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_under_load_lose_nothing_that_was_acknowledged() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("crash");
    let _ = std::fs::remove_dir_all(&root);
    let mut postgres = Postgres::start(&Options::new(&root)).unwrap();
    postgres.ensure_database("crash").unwrap();
    let database = postgres.url("crash");
    let provider = Arc::new(Provider::start().await);
    let port = free_port();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(8)).build().unwrap();
    // The latest acknowledged refresh token of each phone.
    let ledger: Arc<Mutex<Vec<String>>> = Arc::default();

    for kill in 0..KILLS {
        let unlimited = [("ROCKET_RATE_LIMIT", "{enabled=false}")];
        let service = Process::start(port, &database, &provider.tokeninfo_url(), &unlimited);
        let url = service.url.clone();
        service.answers("/readyz", 200).await;

        // Each acknowledged token of the rounds before still works.
        let tokens = std::mem::take(&mut *ledger.lock().unwrap());
        for (number, token) in tokens.iter().enumerate() {
            let body = json!({ "refresh_token": token });
            let (status, answer) =
                post(&client, &url, "/api/v1/auth/refresh", &body).await.expect("it is up");
            assert_eq!(status, 200, "kill {kill}, phone {number}: {answer}");
            ledger.lock().unwrap().push(answer["refresh_token"].as_str().unwrap().to_owned());
        }

        let (acknowledged, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let mut clients = JoinSet::new();
        for phone in 0..CLIENTS {
            let (client, url, provider, ledger) =
                (client.clone(), url.clone(), provider.clone(), ledger.clone());
            let acknowledged = acknowledged.clone();
            clients.spawn(async move {
                let token = token::opaque();
                let subject = format!("{kill}-{phone}");
                provider.accept(&token, token::claims(&subject, &format!("{subject}@example.com")));
                let mut current: Option<String> = None;
                // Sign in, refresh three times, sign in again as the same person, until the end.
                'phones: loop {
                    for step in 0..4 {
                        let (path, body) = match (&current, step) {
                            (Some(token), 1..) => ("/api/v1/auth/refresh", json!({ "refresh_token": token })),
                            _ => ("/api/v1/auth/oauth/idp", json!({ "id_token": token })),
                        };
                        match post(&client, &url, path, &body).await {
                            Some((200 | 201, answer)) => {
                                let next = answer["refresh_token"].as_str().unwrap().to_owned();
                                if step == 0 {
                                    ledger.lock().unwrap().extend(current.take());
                                }
                                current = Some(next);
                                if acknowledged.send(()).is_err() {
                                    break 'phones;
                                }
                            }
                            // The database is on its way back: nothing was changed.
                            Some((503, _)) => {}
                            Some((status, answer)) => panic!("{path}: {status} {answer}"),
                            None => break 'phones,
                        }
                    }
                }
                ledger.lock().unwrap().extend(current);
            });
        }
        drop(acknowledged);
        for _ in 0..ANSWERS {
            heard.recv().await.expect("the phones get answers");
        }
        // Every other time the database dies first, in the middle of it all.
        let both = kill % 2 == 1;
        if both {
            let postmaster = Pid::from_raw(postgres.pid().try_into().unwrap()).unwrap();
            kill_process(postmaster, Signal::KILL).unwrap();
        }
        drop(service);
        drop(heard);
        while let Some(done) = clients.join_next().await {
            done.unwrap();
        }
        if both {
            drop(postgres);
            postgres = Postgres::start(&Options::new(&root)).unwrap();
        }
    }

    let halves = "SELECT (SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id))
                       + (SELECT count(*) FROM sessions s WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = s.id))
                       + (SELECT count(*) FROM sessions s WHERE NOT EXISTS (SELECT FROM identities i WHERE i.id = s.identity_id))";
    let output = postgres.psql("crash").args(["-At", "-c", halves]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "0",
        "a user without identity, or a session without one or without the event of its beginning"
    );
    assert!(ledger.lock().unwrap().len() >= KILLS * CLIENTS / 2);
}
