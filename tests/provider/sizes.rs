//! Answers that are too large.

use serde_json::Value;

use crate::provider::client::{Client, claims, header, provider, text};
use crate::provider::inflate::gunzip;
use crate::support::provider::Behaviour;

#[tokio::test]
async fn a_huge_body_is_sent_to_its_last_byte() {
    const HUGE: usize = 100_000_000;
    let provider = provider(Behaviour::Huge(HUGE as u64)).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    assert_eq!(header(&client.head().await, "content-length"), Some("100000000"));
    let mut received = 0;
    let mut first = Vec::new();
    while received + client.ahead.len() < HUGE {
        if client.ahead.len() > 1 << 16 {
            received += client.ahead.len();
            let part = std::mem::take(&mut client.ahead);
            first = if first.is_empty() { part } else { first };
        }
        assert_ne!(client.more().await.expect("no error"), 0);
    }
    assert_eq!(received + client.ahead.len(), HUGE);
    let value: Value = serde_json::from_str(text(&first).trim_end()).expect("JSON and spaces");
    assert_eq!(value, claims());
    client.ahead.clear();
    // In step with its length: the next answer begins where it should.
    provider.behave(Behaviour::Usual);
    assert_eq!(client.get("good").await.json(), claims());
}

#[tokio::test]
async fn a_client_may_leave_a_huge_body() {
    let provider = provider(Behaviour::Huge(u64::MAX)).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    client.head().await;
    drop(client);
    let counts = provider.until(|counts| counts.open == 0).await;
    assert_eq!(counts.abandoned, 1);
}

#[tokio::test]
async fn an_endless_body_is_chunked_and_goes_on() {
    let provider = provider(Behaviour::EndlessChunked).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let head = client.head().await;
    assert_eq!(header(&head, "transfer-encoding"), Some("chunked"));
    assert_eq!(header(&head, "content-length"), None);
    while client.ahead.len() < 2_000_000 {
        assert_ne!(client.more().await.expect("no error"), 0);
    }
    let whole = claims().to_string();
    let start = format!("{:x}\r\n{whole}\r\n10000\r\n ", whole.len());
    assert!(client.ahead.starts_with(start.as_bytes()));
    drop(client);
    provider.until(|counts| counts.abandoned == 1).await;
}

#[tokio::test]
async fn an_endless_head_never_gets_to_its_empty_line() {
    let provider = provider(Behaviour::EndlessHeaders).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    while client.ahead.len() < 1_000_000 {
        assert_ne!(client.more().await.expect("no error"), 0);
    }
    let read = text(&client.ahead);
    assert!(read.starts_with("HTTP/1.1 200 OK\r\n") && !read.contains("\r\n\r\n"));
}

#[tokio::test]
async fn a_gzip_bomb_is_small_until_it_is_inflated() {
    for inflated in [8 << 20, 100_000, 300, 0] {
        let provider = provider(Behaviour::GzipBomb(inflated)).await;
        let answer = Client::to(&provider).await.get("good").await;
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.body.len() < 60_000, "{} bytes", answer.body.len());
        let plain = gunzip(&answer.body);
        let whole = claims().to_string();
        assert_eq!(plain.len(), inflated.max(whole.len()));
        assert!(plain.starts_with(whole.as_bytes()));
        assert!(plain[whole.len()..].iter().all(|byte| *byte == b' '));
    }
}

#[tokio::test]
async fn a_gzip_bomb_may_hold_any_text() {
    let provider = provider(Behaviour::GzipBomb(5000)).await;
    let odd = serde_json::json!({"name": "Zoë 東京 \u{7f}"});
    provider.accept("odd", odd.clone());
    let answer = Client::to(&provider).await.get("odd").await;
    let plain = gunzip(&answer.body);
    assert_eq!(serde_json::from_slice::<Value>(&plain).expect("JSON"), odd);
}

#[tokio::test]
async fn many_headers_are_all_sent() {
    let provider = provider(Behaviour::ManyHeaders(1000)).await;
    let mut client = Client::to(&provider).await;
    let answer = client.get("good").await;
    assert_eq!(answer.head.matches("\r\nx-filler-").count(), 1000);
    assert_eq!(answer.json(), claims());
    assert_eq!(client.get("good").await.json(), claims());
}

#[tokio::test]
async fn a_huge_header_has_the_size_asked_for() {
    let provider = provider(Behaviour::HugeHeader(1 << 20)).await;
    let answer = Client::to(&provider).await.get("good").await;
    assert_eq!(answer.header("x-filler").map(str::len), Some(1 << 20));
    assert_eq!(answer.json(), claims());
}
