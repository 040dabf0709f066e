//! A night of outages, in some seconds: the provider, the database and the program itself fail and
//! recover, and Prometheus reports it.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::deploy::phone;
use crate::monitoring::client::CLIENT;
use crate::monitoring::prometheus::{Prometheus, is_here};
use crate::support::cluster::Database;
use crate::support::process::{Process, eventually, free_port, until};
use crate::support::provider::{Behaviour, Provider};
use crate::support::relay::SocketLink;
use crate::support::token::claims;

/// The pause between two requests of one phone.
const PAUSE: Duration = Duration::from_millis(100);

/// Refuses new connections to a database, and ends the open ones.
async fn cut(socket_link: &SocketLink, database: &Database) {
    fs::remove_file(&socket_link.path).unwrap();
    let away = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    // All statements share one connection, or the pool's connections would end each other.
    let mut own = database.pool.acquire().await.unwrap();
    // A client may still be connecting.
    until("all are gone", async || {
        let gone: i64 = sqlx::query_scalar(away).fetch_one(&mut *own).await.unwrap();
        gone == 0
    })
    .await;
}

/// Phones that go on after failures, and a proxy that checks readiness.
fn traffic(url: &str, provider: &Provider) -> JoinSet<()> {
    let mut traffic = JoinSet::new();
    for number in 0..4 {
        let claims = claims(
            &format!("subject-{number}"),
            &format!("{number}@example.com"),
        );
        let url = url.to_owned();
        let token = provider.token(claims);
        traffic.spawn(async move {
            loop {
                // The outcomes are for Prometheus to see.
                let session = phone::sign_in(&CLIENT, &url, &token).await;
                let session = session.unwrap_or(json!({ "refresh_token": "none" }));
                let _ = phone::refresh(&CLIENT, &url, &session).await;
                let _ = CLIENT.get(format!("{url}/readyz")).send().await;
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    traffic
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_fire_during_an_outage_and_end_after_it() {
    if !is_here() {
        return;
    }
    // One database for each instance, so that a single instance can lose its database.
    let database = Database::create().await;
    let another = Database::create().await;
    let provider = Provider::start().await;
    let socket_link = SocketLink::cut_to(&database).await;
    socket_link.mend();
    let unlimited = [("ROCKET_RATE_LIMIT", "{enabled=false}")];
    let start = |port, url: &str| Process::start(port, url, &provider.tokeninfo_url(), &unlimited);
    let ports = [free_port(), free_port()];
    let instances = ports.map(|port| format!("127.0.0.1:{port}"));
    let one = start(ports[0], &socket_link.url);
    let two = start(ports[1], &another.url);
    for service in [&one, &two] {
        service.answers("/readyz", 200).await;
    }
    let prometheus = Prometheus::watch([&instances[0], &instances[1]]).await;
    let traffic = (traffic(&one.url, &provider), traffic(&two.url, &provider));
    eventually("both are watched", async || {
        let targets = prometheus.ask("targets?state=active").await;
        let targets = targets["activeTargets"].as_array().unwrap();
        (targets.len() == 2 && targets.iter().all(|target| target["health"] == "up")).then_some(())
    })
    .await;
    // Everything works for longer than an alert needs to fire.
    provider.until(|counts| counts.calls >= 80).await;
    for alert in ["Down", "NotReady", "DatabaseFailing", "ProviderFailing"] {
        prometheus.is_silent(&format!("Vestibule{alert}")).await;
    }

    provider.behave(Behaviour::status(503));
    prometheus
        .fires("VestibuleProviderFailing", "provider", "idp")
        .await;
    provider.behave(Behaviour::Usual);
    prometheus.is_silent("VestibuleProviderFailing").await;

    cut(&socket_link, &database).await;
    prometheus
        .fires("VestibuleDatabaseFailing", "instance", &instances[0])
        .await;
    prometheus
        .fires("VestibuleNotReady", "instance", &instances[0])
        .await;
    socket_link.mend();
    for alert in ["VestibuleDatabaseFailing", "VestibuleNotReady"] {
        prometheus.is_silent(alert).await;
    }

    // Dropping the instance kills it.
    drop(two);
    prometheus
        .fires("VestibuleDown", "instance", &instances[1])
        .await;
    let two = start(ports[1], &another.url);
    prometheus.is_silent("VestibuleDown").await;
    two.answers("/readyz", 200).await;
    drop(traffic);
}
