//! Behaviours of the fake provider that the service's tests would pass without.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::provider::{Behaviour, Provider};

const REQUEST: &[u8] = b"GET /tokeninfo?id_token=good HTTP/1.1\r\nhost: idp\r\n\r\n";
const CLAIMS: &str = r#"{"sub":"ada"}"#;

async fn provider(behaviour: Behaviour) -> Provider {
    let provider = Provider::start().await;
    provider.accept("good", json!({ "sub": "ada" }));
    provider.behave(behaviour);
    provider
}

/// All that is answered to a request, and how the connection ends.
async fn answer(provider: &Provider) -> (String, io::Result<()>) {
    let mut stream = TcpStream::connect(provider.address()).await.unwrap();
    // A connection that is reset already may take the request or not.
    let _ = stream.write_all(REQUEST).await;
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
    (String::from_utf8(bytes).unwrap(), end.expect("the connection ends").map(drop))
}

#[tokio::test]
async fn a_connection_is_cut_where_and_as_its_behaviour_says() {
    let half = &CLAIMS[..6];
    for (behaviour, body, is_reset) in [
        (Behaviour::ResetOnConnect, None, true),
        (Behaviour::ResetBeforeAnswer, None, true),
        (Behaviour::ResetMidBody, Some(half), true),
        (Behaviour::CloseBeforeAnswer, None, false),
        (Behaviour::CloseAfterHalf, Some(half), false),
    ] {
        let provider = provider(behaviour.clone()).await;
        let (bytes, end) = answer(&provider).await;
        let (head, sent) = bytes.split_once("\r\n\r\n").unzip();
        assert_eq!(sent, body, "{behaviour:?}");
        assert!(head.is_none_or(|head| head.ends_with("\r\ncontent-length: 13")), "{behaviour:?}");
        let reset = end.map_err(|error| error.kind()) == Err(ErrorKind::ConnectionReset);
        assert_eq!(reset, is_reset, "{behaviour:?}");
        assert_eq!(provider.calls() == 0, matches!(behaviour, Behaviour::ResetOnConnect), "{behaviour:?}");
    }
}

#[tokio::test]
async fn a_trickled_answer_is_whole_and_takes_its_time() {
    let interval = Duration::from_millis(5);
    let provider = provider(Behaviour::Usual.trickled(interval)).await;
    let started = Instant::now();
    let answer = reqwest::get(format!("{}?id_token=good", provider.tokeninfo_url())).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), CLAIMS);
    assert!(started.elapsed() >= interval * 12);
}

#[tokio::test]
async fn a_client_that_leaves_is_counted_and_a_dropped_provider_closes_everything() {
    let provider = provider(Behaviour::NeverAnswer).await;
    let mut leaves = TcpStream::connect(provider.address()).await.unwrap();
    let mut stays = TcpStream::connect(provider.address()).await.unwrap();
    leaves.write_all(REQUEST).await.unwrap();
    stays.write_all(REQUEST).await.unwrap();
    provider.until(|counts| (counts.open, counts.in_flight) == (2, 2)).await;
    drop(leaves);
    provider.until(|counts| (counts.open, counts.in_flight, counts.abandoned) == (1, 1, 1)).await;
    drop(provider);
    assert_eq!(stays.read(&mut [0]).await.unwrap(), 0);
}
