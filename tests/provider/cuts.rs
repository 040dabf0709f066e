//! Connections that end, or stall, at the wrong moment.

use crate::provider::client::{Client, claims, is_reset, provider, text};
use crate::support::provider::Behaviour;

/// The head and half the claims.
fn is_half(bytes: &[u8]) -> bool {
    let whole = claims().to_string();
    let read = text(bytes);
    let length = format!("content-length: {}\r\n", whole.len());
    read.contains(&length) && read.ends_with(&format!("\r\n\r\n{}", &whole[..whole.len() / 2]))
}

#[tokio::test]
async fn a_new_connection_can_be_reset() {
    let provider = provider(Behaviour::ResetOnConnect).await;
    let (bytes, end) = Client::to(&provider).await.rest().await;
    assert!(bytes.is_empty() && is_reset(&end), "{end:?}");
    let counts = provider.until(|counts| counts.open == 0).await;
    assert_eq!((counts.connections, counts.calls), (1, 0));
}

#[tokio::test]
async fn a_reset_on_connect_spares_nobody_who_is_connected_already() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    assert_eq!(client.get("good").await.code, 200);
    provider.behave(Behaviour::ResetOnConnect);
    client.ask("good").await;
    assert!(is_reset(&client.rest().await.1));
}

#[tokio::test]
async fn one_connection_can_be_reset_and_the_next_served() {
    let provider = provider(Behaviour::Usual).await;
    provider.behave_once(Behaviour::ResetOnConnect);
    assert!(is_reset(&Client::to(&provider).await.rest().await.1));
    assert_eq!(Client::to(&provider).await.get("good").await.code, 200);
}

#[tokio::test]
async fn a_request_can_be_reset_before_its_answer() {
    let provider = provider(Behaviour::ResetBeforeAnswer).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let (bytes, end) = client.rest().await;
    assert!(bytes.is_empty() && is_reset(&end), "{end:?}");
    assert_eq!(provider.requests()[0].token().as_deref(), Some("good"));
}

#[tokio::test]
async fn a_body_can_be_reset_half_way() {
    let provider = provider(Behaviour::ResetMidBody).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let (bytes, end) = client.rest().await;
    assert!(is_half(&bytes) && is_reset(&end), "{end:?} {}", text(&bytes));
}

#[tokio::test]
async fn a_request_can_be_closed_before_its_answer() {
    let provider = provider(Behaviour::CloseBeforeAnswer).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    client.sees_a_close().await;
    assert_eq!((provider.calls(), provider.counts().answered), (1, 1));
}

#[tokio::test]
async fn a_body_can_be_closed_half_way() {
    let provider = provider(Behaviour::CloseAfterHalf).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let (bytes, end) = client.rest().await;
    assert!(is_half(&bytes) && end.is_ok(), "{end:?} {}", text(&bytes));
}

#[tokio::test]
async fn a_body_can_stall_half_way() {
    let provider = provider(Behaviour::StallAfterHalf).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    while !is_half(&client.ahead) {
        assert_ne!(client.more().await.expect("no error"), 0);
    }
    client.ahead.clear();
    client.hears_nothing().await;
    assert_eq!(provider.counts().in_flight, 1);
}

#[tokio::test]
async fn a_black_hole_says_nothing_until_the_client_leaves() {
    let provider = provider(Behaviour::NeverAnswer).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    client.hears_nothing().await;
    drop(client);
    let counts = provider.until(|counts| counts.open == 0).await;
    assert_eq!((counts.in_flight, counts.abandoned, counts.answered), (0, 1, 0));
}

#[tokio::test]
async fn a_length_that_is_too_long_ends_in_a_close() {
    let body = b"{}".to_vec();
    let provider = provider(Behaviour::LyingContentLength { claimed: 9, body }).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let (bytes, end) = client.rest().await;
    let read = text(&bytes);
    assert!(read.contains("content-length: 9\r\n") && read.ends_with("\r\n\r\n{}"), "{read}");
    assert!(end.is_ok());
}

#[tokio::test]
async fn a_length_that_is_too_short_leaves_bytes_on_an_open_connection() {
    let body = b"{}HTTP/1.1 200 OK".to_vec();
    let provider = provider(Behaviour::LyingContentLength { claimed: 2, body }).await;
    let mut client = Client::to(&provider).await;
    assert_eq!(client.get("good").await.body, b"{}");
    while client.ahead != b"HTTP/1.1 200 OK" {
        assert_ne!(client.more().await.expect("no error"), 0);
    }
    client.ahead.clear();
    client.hears_nothing().await;
}

#[tokio::test]
async fn a_dropped_provider_closes_everything() {
    let provider = provider(Behaviour::NeverAnswer).await;
    let address = provider.address();
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    provider.until(|counts| counts.in_flight == 1).await;
    drop(provider);
    assert!(client.rest().await.0.is_empty());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
