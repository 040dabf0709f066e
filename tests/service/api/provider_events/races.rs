//! Messages that arrive at once.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::{House, RISC, genuine, message};
use crate::support::race::rounds;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_arrives_twice_at_once_is_applied_once() {
    let house = Arc::new(House::open().await);
    for round in 0..rounds() {
        let opened = house.sign_in("ada").await;
        assert_eq!(opened.status.as_u16() / 100, 2, "round {round}: {}", opened.text);
        let token = genuine(&message(&format!("{RISC}/sessions-revoked"), "ada", &json!({})));
        let mut senders = JoinSet::new();
        for _ in 0..2 {
            let (house, token) = (house.clone(), token.clone());
            senders.spawn(async move { house.send(&token).await.status.as_u16() });
        }
        assert_eq!(senders.join_all().await, [202, 202], "round {round}");
    }
    let recorded = house.recorded().await;
    assert_eq!((recorded.len(), house.known().await), (rounds(), i64::try_from(rounds()).unwrap()));
    assert!(
        recorded.iter().all(|(.., detail)| detail["sessions"] == 1),
        "each ended the round's session, once"
    );
    assert_eq!(house.state("ada").await.sessions, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_outlives_a_suspension_whoever_signs_in_meanwhile() {
    let house = Arc::new(House::open().await);
    house.sign_in("ada").await;
    for round in 0..rounds() {
        let (disabled, enabled) = (format!("{RISC}/account-disabled"), format!("{RISC}/account-enabled"));
        let mut clients = JoinSet::new();
        for _ in 0..4 {
            let house = house.clone();
            clients.spawn(async move { house.sign_in("ada").await });
        }
        house.tell(&message(&disabled, "ada", &json!({ "reason": "hijacking" }))).await;
        for answer in clients.join_all().await {
            if answer.status.as_u16() == 200 {
                let refreshed = house.app.refresh(&answer.refresh_token()).await;
                assert_eq!(refreshed.status.as_u16(), 401, "round {round}");
                let me = house.app.get(&answer.access_token(), "/api/v1/me").await;
                assert_eq!(me.status.as_u16(), 401, "round {round}");
            } else {
                assert_eq!(answer.error(), "identity_suspended", "round {round}");
            }
        }
        house.tell(&message(&enabled, "ada", &json!({}))).await;
        assert_eq!(house.state("ada").await.sessions, 0, "round {round}: lifting it revives none");
    }
}
