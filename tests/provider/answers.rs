//! Complete answers of every kind.

use serde_json::json;

use crate::provider::client::{Client, claims, provider};
use crate::support::provider::Behaviour;

#[tokio::test]
async fn an_accepted_token_is_answered_with_its_claims() {
    let provider = provider(Behaviour::Usual).await;
    let answer = Client::to(&provider).await.get("good").await;
    assert_eq!(answer.code, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), claims());
}

#[tokio::test]
async fn any_other_token_is_invalid() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    for token in ["bad", "goo", "goodd", "Good", "good%20", ""] {
        let answer = client.get(token).await;
        assert_eq!((answer.code, answer.json()), (400, json!({"error": "invalid_token"})));
    }
}

#[tokio::test]
async fn a_revoked_token_is_invalid() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    assert_eq!(client.get("good").await.code, 200);
    provider.revoke("good");
    assert_eq!(client.get("good").await.code, 400);
}

#[tokio::test]
async fn the_usual_answer_to_a_wrong_request_says_what_is_wrong() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    for (line, code) in [
        ("GET /tokeninfo", 400),
        ("GET /tokeninfo?access_token=good", 400),
        ("GET /tokeninfo?id_token=good&id_token=good", 400),
        ("POST /tokeninfo?id_token=good", 400),
        ("GET /other?id_token=good", 404),
        ("PUT /tokeninfo?id_token=good", 405),
    ] {
        client.send(&format!("{line} HTTP/1.1\r\n\r\n")).await;
        assert_eq!(client.answer().await.code, code, "{line}");
    }
}

#[tokio::test]
async fn a_form_body_is_read_like_a_query() {
    let provider = provider(Behaviour::Usual).await;
    provider.accept("a b+c/ü", claims());
    let mut client = Client::to(&provider).await;
    let head =
        "POST /tokeninfo HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded; charset=utf-8\r\n";
    client.send(&format!("{head}content-length: 27\r\n\r\nid_token=a+b%2Bc%2f%C3%BC&x")).await;
    assert_eq!(client.answer().await.code, 200);
    client
        .send(&format!(
            "{head}transfer-encoding: chunked\r\n\r\n9\r\nid_token=\r\n4;x=y\r\ngood\r\n0\r\na: b\r\n\r\n"
        ))
        .await;
    assert_eq!(client.answer().await.code, 200);
}

#[tokio::test]
async fn a_status_is_sent_with_its_headers_and_body() {
    let provider = provider(Behaviour::Status {
        code: 503,
        headers: vec![("Retry-After".to_owned(), "7".to_owned())],
        body: b"later".to_vec(),
    })
    .await;
    let answer = Client::to(&provider).await.get("good").await;
    assert_eq!((answer.code, answer.body.as_slice()), (503, &b"later"[..]));
    assert_eq!(answer.header("retry-after"), Some("7"));
    assert!(answer.head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
}

#[tokio::test]
async fn bodiless_statuses_have_no_length_and_keep_the_connection() {
    let provider = provider(Behaviour::Usual).await;
    let mut client = Client::to(&provider).await;
    for code in [204, 304] {
        provider.behave_once(Behaviour::status(code));
        let answer = client.get("good").await;
        assert_eq!((answer.code, answer.header("content-length")), (code, None));
    }
    assert_eq!(client.get("good").await.code, 200);
}

#[tokio::test]
async fn a_partial_answer_has_a_body_like_any_other() {
    let provider = provider(Behaviour::Status {
        code: 206,
        headers: vec![("content-range".to_owned(), "bytes 0-1/9".to_owned())],
        body: b"{}".to_vec(),
    })
    .await;
    let answer = Client::to(&provider).await.get("good").await;
    assert_eq!((answer.code, answer.header("content-length")), (206, Some("2")));
}

#[tokio::test]
async fn an_interim_status_alone_is_followed_by_silence() {
    for code in [101, 103] {
        let provider = provider(Behaviour::status(code)).await;
        let mut client = Client::to(&provider).await;
        assert_eq!(client.get("good").await.code, code);
        client.hears_nothing().await;
        assert_eq!(provider.counts().in_flight, 1);
    }
}

#[tokio::test]
async fn interim_answers_come_before_the_final_one() {
    let provider = provider(Behaviour::Usual.after_interim(103).after_interim(102)).await;
    let mut client = Client::to(&provider).await;
    assert_eq!(client.get("good").await.code, 102);
    assert_eq!(client.answer().await.code, 103);
    assert_eq!(client.answer().await.json(), claims());
}

#[tokio::test]
async fn a_redirection_names_its_target() {
    let to = "http://elsewhere.example/tokeninfo?x=1".to_owned();
    let provider = provider(Behaviour::Redirect { code: 307, to }).await;
    let answer = Client::to(&provider).await.get("good").await;
    assert_eq!(answer.code, 307);
    assert_eq!(answer.header("location"), Some("http://elsewhere.example/tokeninfo?x=1"));
    assert!(answer.body.is_empty());
}

#[tokio::test]
async fn any_json_can_be_answered() {
    let provider = provider(Behaviour::Json(json!([1, null]))).await;
    let answer = Client::to(&provider).await.get("unknown").await;
    assert_eq!((answer.code, answer.json()), (200, json!([1, null])));
}
