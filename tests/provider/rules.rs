//! Which behaviour wins.

use crate::provider::client::{Client, claims, provider};
use crate::support::provider::Behaviour;

#[tokio::test]
async fn queued_behaviours_are_used_once_and_in_order() {
    let provider = provider(Behaviour::Usual).await;
    provider.behave_once(Behaviour::status(500));
    provider.behave_once(Behaviour::status(502));
    let mut client = Client::to(&provider).await;
    for code in [500, 502, 200, 200] {
        assert_eq!(client.get("good").await.code, code);
    }
}

#[tokio::test]
async fn the_queue_goes_before_the_token_and_the_token_before_the_rest() {
    let provider = provider(Behaviour::status(503)).await;
    provider.behave_for("good", Behaviour::Usual);
    provider.behave_for("odd", Behaviour::status(418));
    provider.behave_once(Behaviour::status(500));
    let mut client = Client::to(&provider).await;
    for (token, code) in [("good", 500), ("good", 200), ("odd", 418), ("other", 503)] {
        assert_eq!(client.get(token).await.code, code, "{token}");
    }
    provider.behave(Behaviour::Usual);
    assert_eq!(client.get("other").await.code, 400);
}

#[tokio::test]
async fn a_rule_changed_while_a_request_waits_is_for_the_next_one() {
    let provider = provider(Behaviour::Usual).await;
    let gate = provider.hold();
    let mut client = Client::to(&provider).await;
    client.ask("good").await;
    gate.arrived(1).await;
    provider.behave(Behaviour::status(500));
    gate.release();
    assert_eq!(client.answer().await.json(), claims());
    assert_eq!(client.get("good").await.code, 500);
}
