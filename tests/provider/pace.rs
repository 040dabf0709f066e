//! Answers that take their time.

use std::time::{Duration, Instant};

use crate::provider::client::{Client, claims, provider};
use crate::support::provider::{Behaviour, Step};

#[tokio::test]
async fn the_first_byte_can_be_late() {
    let delay = Duration::from_millis(120);
    let provider = provider(Behaviour::Usual.delayed(delay)).await;
    let mut client = Client::to(&provider).await;
    let start = Instant::now();
    client.ask("good").await;
    assert_ne!(client.more().await.expect("no error"), 0);
    assert!(start.elapsed() >= delay);
    assert_eq!(client.answer().await.json(), claims());
}

#[tokio::test]
async fn a_client_may_leave_during_a_delay() {
    let provider = provider(Behaviour::Usual.delayed(Duration::from_hours(1))).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    provider.until(|counts| counts.in_flight == 1).await;
    drop(client);
    let counts = provider.until(|counts| counts.open == 0).await;
    assert_eq!(counts.abandoned, 1);
}

#[tokio::test]
async fn a_trickled_body_comes_byte_by_byte_behind_its_head() {
    let interval = Duration::from_millis(5);
    let provider = provider(Behaviour::Usual.trickled(interval)).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    client.head().await;
    let length = claims().to_string().len();
    let start = Instant::now();
    let mut reads = 0;
    let mut largest = 0;
    while client.ahead.len() < length {
        largest = largest.max(client.more().await.expect("no error"));
        reads += 1;
    }
    // Under load a few bytes may be read together, but never all of them.
    assert!(reads > length / 4 && largest < length / 2, "{reads} reads, {largest} at most");
    assert!(start.elapsed() >= interval * u32::try_from(length - 2).expect("small"));
    assert_eq!(client.ahead, claims().to_string().as_bytes());
    assert_eq!(provider.counts().answered, 1);
}

#[tokio::test]
async fn a_script_can_trickle_the_head_too() {
    let bytes = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    let interval = Duration::from_millis(2);
    let script = Behaviour::Script(vec![Step::Trickle { bytes, interval }]);
    let provider = provider(script).await;
    let mut client = Client::to(&provider).await;
    let start = Instant::now();
    assert_eq!(client.get("good").await.code, 204);
    assert!(start.elapsed() >= interval * 26);
    assert_eq!(client.get("good").await.code, 204);
}

#[tokio::test]
async fn behaviours_combine() {
    let interval = Duration::from_millis(1);
    let delay = Duration::from_millis(30);
    let behaviour = Behaviour::body("text/plain", "slow");
    let provider = provider(behaviour.trickled(interval).after_interim(103).delayed(delay)).await;
    let mut client = Client::to(&provider).await;
    let start = Instant::now();
    assert_eq!(client.get("good").await.code, 103);
    assert!(start.elapsed() >= delay);
    assert_eq!(client.answer().await.body, b"slow");
}
