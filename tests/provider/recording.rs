//! What is kept of the requests.

use crate::provider::client::{Client, provider};
use crate::support::provider::Behaviour;

#[tokio::test]
async fn a_request_is_recorded_as_it_was_sent() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    client
        .send(
            "GET /tokeninfo?id_token=go%6Fd&a=%zz+1 HTTP/1.1\r\nHost: idp\r\nX-A:  b : c \r\nx-a: d\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer().await.code, 200);
    let requests = provider.requests();
    let [request] = requests.as_slice() else {
        panic!("{} requests", requests.len());
    };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/tokeninfo"));
    assert_eq!(request.query, "id_token=go%6Fd&a=%zz+1");
    let headers = [("Host", "idp"), ("X-A", "b : c"), ("x-a", "d")];
    assert_eq!(request.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(request.header("HOST"), Some("idp"));
    assert_eq!(request.header("cookie"), None);
    assert_eq!(request.token().as_deref(), Some("good"));
    assert_eq!(request.parameters()[1], ("a".to_owned(), "%zz 1".to_owned()));
    assert!(request.body.is_empty());
}

#[tokio::test]
async fn a_body_is_recorded_without_its_framing() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    client.send("POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n").await;
    assert_eq!(client.answer().await.code, 404);
    assert_eq!(provider.requests()[0].body, b"abc");
}

#[tokio::test]
async fn connections_are_numbered_as_they_were_accepted() {
    let provider = provider(Behaviour::Usual).await;
    let mut first = Client::to(&provider).await;
    first.get("good").await;
    Client::to(&provider).await.get("good").await;
    first.get("good").await;
    let numbers: Vec<_> = provider.requests().iter().map(|request| request.connection).collect();
    assert_eq!(numbers, [1, 2, 1]);
    assert_eq!((provider.calls(), provider.connections()), (3, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_one_after_the_other_never_overlap_in_the_count() {
    let provider = provider(Behaviour::Usual).await;
    for _ in 0..1000 {
        Client::to(&provider).await.get("good").await;
    }
    assert_eq!(provider.in_flight_max(), 1);
}

#[tokio::test]
async fn a_request_whose_client_left_half_way_is_none() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    client.send("GET /tokeninfo?id_token=good HTTP/1.1\r\n").await;
    drop(client);
    let counts = provider.until(|counts| counts.connections == 1 && counts.open == 0).await;
    assert_eq!((counts.calls, counts.malformed), (0, 0));
}
