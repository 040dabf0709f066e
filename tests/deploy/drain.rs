//! Stopping one instance without a proxy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::json;

use crate::deploy::phone;
use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::Vestibule;
use crate::support::cluster::Database;
use crate::support::process::{eventually, until};
use crate::support::provider::Provider;
use crate::support::token;

/// Drain time in seconds, longer than the default: this machine may be busy.
const DRAIN: u64 = 15;

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_instance_reports_it_and_still_serves_requests() {
    let _alone = alone().await;
    let folder = folder("drain");
    let database = Database::create().await;
    let provider = Arc::new(Provider::start().await);
    let instance = Vestibule::new(&folder, &database.url, &provider.tokeninfo_url());
    let mut instance = instance
        .with("ROCKET_DRAIN", &DRAIN.to_string())
        .started()
        .await;
    let url = instance.url();
    // One kept-alive connection, for one request after the other.
    let kept = Client::builder().pool_max_idle_per_host(1).build().unwrap();
    let token = provider.token(token::claims("subject", "ada@example.com"));
    let session = phone::sign_in(&kept, &url, &token).await.unwrap();

    instance.prints(&["health"]);
    let gate = provider.hold();
    let other = provider.token(token::claims("another", "grace@example.com"));
    let in_flight = tokio::spawn({
        let url = url.clone();
        async move { phone::sign_in(&Client::new(), &url, &other).await }
    });
    gate.arrived(1).await;

    let told = Instant::now();
    instance.tell_to_stop();
    let readiness = eventually("/readyz says that it stops", async || {
        let answer = kept.get(format!("{url}/readyz")).send().await.unwrap();
        (answer.status() == 503).then_some(answer)
    })
    .await;
    // A request that started before the stop completes.
    gate.release();
    in_flight
        .await
        .unwrap()
        .expect("what was in flight is answered");
    let said: serde_json::Value = serde_json::from_str(&readiness.text().await.unwrap()).unwrap();
    let expected =
        json!({ "service": "shutting_down", "database": "ok", "migrations": "ok", "keys": "ok" });
    assert_eq!(said, expected);
    let health = instance.run(&["health"]);
    assert_eq!(health.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&health.stdout).contains("shutting_down"));
    phone::read(&kept, &url, &session, "/api/v1/me")
        .await
        .expect("the connection that is kept works");
    phone::refresh(&Client::new(), &url, &session)
        .await
        .expect("a new connection works");
    assert!(
        told.elapsed() < Duration::from_secs(DRAIN),
        "all that within the drain"
    );
    assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
    let took = told.elapsed();
    assert!((DRAIN..DRAIN + 7).contains(&took.as_secs()), "{took:?}");
    let health = instance.run(&["health"]);
    assert_eq!(health.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&health.stderr).contains("check that the service is running"));
}

#[tokio::test(flavor = "multi_thread")]
async fn told_twice_an_instance_stops_at_once() {
    let _alone = alone().await;
    let folder = folder("drain-twice");
    let database = Database::create().await;
    let instance =
        Vestibule::new(&folder, &database.url, "http://127.0.0.1:1/").with("ROCKET_DRAIN", "300");
    let mut instance = instance.started().await;
    instance.tell_to_stop();
    until("it heard that", async || {
        instance.said().contains("shutdown requested")
    })
    .await;
    instance.tell_to_stop();
    assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
}
