//! Requests that are held.

use crate::provider::client::{Client, provider};
use crate::support::provider::Behaviour;

#[tokio::test]
async fn a_held_request_waits_until_it_is_released() {
    let provider = provider(Behaviour::Usual).await;
    let gate = provider.hold();
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    gate.arrived(1).await;
    assert_eq!((gate.waiting(), provider.calls(), provider.counts().in_flight), (1, 1, 1));
    client.hears_nothing().await;
    gate.release();
    assert_eq!(client.answer().await.code, 200);
    assert_eq!(client.get("good").await.code, 200);
}

#[tokio::test]
async fn a_dropped_gate_is_open() {
    let provider = provider(Behaviour::Usual).await;
    drop(provider.hold());
    assert_eq!(Client::to(&provider).await.get("good").await.code, 200);
}

#[tokio::test]
async fn a_gate_counts_all_who_wait_at_it() {
    let provider = provider(Behaviour::Usual).await;
    let gate = provider.hold();
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::to(&provider).await;
        client.ask("good").await;
        clients.push(client);
    }
    gate.arrived(20).await;
    gate.release();
    for client in &mut clients {
        assert_eq!(client.answer().await.code, 200);
    }
    assert_eq!(provider.in_flight_max(), 20);
}

#[tokio::test]
async fn a_gate_admits_as_many_as_it_is_told() {
    let provider = provider(Behaviour::Usual).await;
    let gate = provider.hold();
    let mut first = Client::to(&provider).await;
    first.ask("good").await;
    gate.arrived(1).await;
    let mut second = Client::to(&provider).await;
    second.ask("good").await;
    gate.arrived(2).await;
    gate.admit(1);
    assert_eq!(first.answer().await.code, 200);
    second.hears_nothing().await;
    gate.admit(1);
    assert_eq!(second.answer().await.code, 200);
    gate.empty().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_missed_at_the_gate() {
    let provider = provider(Behaviour::Usual).await;
    let gate = provider.hold();
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    gate.arrived(1).await;
    drop(client);
    gate.empty().await;
    let counts = provider.until(|counts| counts.open == 0).await;
    assert_eq!((counts.abandoned, counts.in_flight), (1, 0));
}

#[tokio::test]
async fn a_later_gate_holds_the_requests_that_follow() {
    let provider = provider(Behaviour::Usual).await;
    let first = provider.hold();
    let second = provider.hold();
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    second.arrived(1).await;
    first.release();
    client.hears_nothing().await;
    second.release();
    assert_eq!(client.answer().await.code, 200);
}
