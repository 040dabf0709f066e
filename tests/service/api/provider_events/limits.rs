//! Limits: bursts of genuine messages pass, and forged messages cost little.

use serde_json::json;

use super::{EventsApp, RISC, assert_refused, genuine, message, transmitter};
use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::problem::assert_problem;
use crate::support::token::{claims, with};

/// Opens an app with rate limits.
async fn limited() -> EventsApp {
    let (keys, transmitter) = transmitter().await;
    let ssf_url = format!("{}/.well-known/risc-configuration", transmitter.url());
    let app = App::start_on(Database::create().await, |figment| {
        figment
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", 5))
            .merge(("providers.second.ssf_url", ssf_url))
    })
    .await;
    EventsApp {
        app,
        keys,
        transmitter,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bursts_of_genuine_messages_pass_and_forged_floods_are_limited() {
    let events_app = limited().await;
    let event = format!("{RISC}/sessions-revoked");
    for number in 0..50 {
        events_app
            .tell(&message(&event, &format!("subject-{number}"), &json!({})))
            .await;
    }
    // Messages do not count as sign-ins of the sender's address.
    assert_eq!(
        events_app
            .app
            .sign_in(&claims("ada", "ada@example.com"))
            .await
            .status,
        201
    );

    let events_app = limited().await;
    let forged = || {
        genuine(&with(
            message(&event, "eve", &json!({})),
            &json!({ "aud": "another" }),
        ))
    };
    let mut refused = 0;
    for _ in 0..30 {
        let answer = events_app.send(&forged()).await;
        if answer.status == 429 {
            assert_problem(&answer, 429, "rate_limited");
            assert!(answer.header("Retry-After").is_some() && answer.header("RateLimit").is_some());
        } else {
            assert_refused(&answer, "invalid_audience");
            refused += 1;
        }
    }
    assert!((5..15).contains(&refused), "{refused}");
    assert_eq!(
        events_app
            .app
            .sign_in(&claims("ada", "ada@example.com"))
            .await
            .status,
        201
    );
}
