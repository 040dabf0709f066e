//! Connections that are used again, or should not have been.

use crate::provider::client::{Client, claims, provider};
use crate::support::provider::Behaviour;

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    for _ in 0..5 {
        assert_eq!(client.get("good").await.code, 200);
    }
    let counts = provider.counts();
    assert_eq!((counts.connections, counts.calls, counts.in_flight_max), (1, 5, 1));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    let good = "GET /tokeninfo?id_token=good HTTP/1.1\r\n\r\n";
    let bad = "GET /tokeninfo?id_token=bad HTTP/1.1\r\n\r\n";
    client.send(&format!("{good}{bad}{good}")).await;
    for code in [200, 400, 200] {
        assert_eq!(client.answer().await.code, code);
    }
}

#[tokio::test]
async fn a_request_sent_while_another_waits_is_kept_for_later() {
    let provider = provider(Behaviour::Usual).await;
    let gate = provider.hold();
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    gate.arrived(1).await;
    client.ask("bad").await;
    gate.release();
    assert_eq!(client.answer().await.code, 200);
    assert_eq!(client.answer().await.code, 400);
}

#[tokio::test]
async fn a_request_may_come_in_any_pieces() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    let form = "content-type: application/x-www-form-urlencoded\r\ncontent-length: 13";
    for byte in format!("POST /tokeninfo HTTP/1.1\r\n{form}\r\n\r\nid_token=good").chars() {
        client.send(&byte.to_string()).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.answer().await.json(), claims());
}

#[tokio::test]
async fn a_client_that_means_to_close_gets_its_answer_and_a_close() {
    let provider = provider(Behaviour::Usual).await;
    for request in [
        "GET /tokeninfo?id_token=good HTTP/1.1\r\nConnection: foo, Close\r\n\r\n",
        "GET /tokeninfo?id_token=good HTTP/1.0\r\n\r\n",
    ] {
        let mut client = Client::to(&provider).await;
        client.send(request).await;
        assert_eq!(client.answer().await.code, 200);
        client.sees_a_close().await;
    }
}

#[tokio::test]
async fn a_half_closed_client_still_gets_its_answer() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    let shut = tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await;
    shut.expect("a live socket");
    assert_eq!(client.answer().await.code, 200);
}

#[tokio::test]
async fn a_body_is_sent_for_when_the_client_waits_to_send_it() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    let form = "content-type: application/x-www-form-urlencoded\r\ncontent-length: 13";
    let wait = "expect: 100-continue";
    client.send(&format!("POST /tokeninfo HTTP/1.1\r\n{form}\r\n{wait}\r\n\r\n")).await;
    assert_eq!(client.answer().await.code, 100);
    client.send("id_token=good").await;
    assert_eq!(client.answer().await.code, 200);
}

#[tokio::test]
async fn a_close_after_each_answer_is_announced_and_kept() {
    let provider = provider(Behaviour::CloseAfterEachAnswer).await;
    let mut client = Client::to(&provider).await;
    let answer = client.get("good").await;
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.json(), claims());
    client.sees_a_close().await;
}

#[tokio::test]
async fn a_silent_close_is_not_announced() {
    let provider = provider(Behaviour::CloseIdleSilently).await;
    let mut client = Client::to(&provider).await;
    let answer = client.get("good").await;
    assert_eq!((answer.code, answer.header("connection")), (200, None));
    client.sees_a_close().await;
}

#[tokio::test]
async fn a_connection_can_die_only_when_it_is_used_again() {
    let provider = provider(Behaviour::Usual.dead_on_reuse()).await;
    let mut client = Client::to(&provider).await;
    assert_eq!(client.get("good").await.code, 200);
    client.hears_nothing().await;
    client.ask("good").await;
    client.sees_a_close().await;
    assert_eq!(Client::to(&provider).await.get("good").await.code, 200);
    assert_eq!((provider.calls(), provider.connections()), (3, 2));
}

#[tokio::test]
async fn nonsense_is_refused_and_counted_but_not_recorded() {
    let provider = provider(Behaviour::Usual).await;
    let huge = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(2 << 20));
    let nonsense = [
        ("\x16\x03\x01 hello\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: 9999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n", 413),
        (huge.as_str(), 431),
    ];
    for (bytes, code) in nonsense {
        let mut client = Client::to(&provider).await;
        client.send(bytes).await;
        let answer = client.answer().await;
        assert_eq!((answer.code, answer.header("connection")), (code, Some("close")));
        client.sees_a_close().await;
    }
    assert_eq!((provider.calls(), provider.counts().malformed), (0, nonsense.len()));
}
