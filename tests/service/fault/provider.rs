//! The provider misbehaves: not the user's fault, answered within five seconds, nothing written.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::provider::Behaviour;
use crate::support::token::{claims, with};

/// Five seconds are promised. The others are for a busy machine, and fewer than a second attempt takes.
const PROMISED: Duration = Duration::from_millis(8_500);

async fn timed(app: &App) -> (Answer, Duration) {
    let started = Instant::now();
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    (answer, started.elapsed())
}

async fn assert_unavailable(app: &App, what: &str) {
    let (answer, took) = timed(app).await;
    assert_eq!(answer.error(), "provider_unavailable", "{what}");
    assert_problem(&answer, 503, "provider_unavailable");
    assert!(took < PROMISED, "{what}: {took:?}");
    assert_eq!(app.database.rows().await, [0; 3], "{what}");
}

// `tests/provider/verify/endpoints.rs` has the other ways to fail, each at every endpoint of every provider.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_is_a_503_in_time_that_writes_nothing_and_the_next_sign_in_is_fine() {
    for behaviours in [
        [Behaviour::NeverAnswer, Behaviour::status(404), Behaviour::body("text/html", "<!doctype html>")],
        [Behaviour::CloseAfterHalf, Behaviour::ResetMidBody, Behaviour::StallAfterHalf],
        [Behaviour::Huge(100 << 20), Behaviour::EndlessChunked, Behaviour::GzipBomb(8 << 20)],
    ] {
        let app = App::start().await;
        for behaviour in behaviours {
            app.provider.behave(behaviour.clone());
            assert_unavailable(&app, &format!("{behaviour:?}")).await;
        }
        app.provider.behave(Behaviour::Usual);
        assert_eq!(timed(&app).await.0.outcome(), "created");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_inside_a_200_is_never_a_success() {
    let app = App::start().await;
    let sound = claims("subject", "ada@example.com");
    for (error, status, name) in [
        (json!("invalid_token"), 401, "invalid_token"),
        (json!({ "code": 400 }), 401, "invalid_token"),
        (json!("server_error"), 503, "provider_unavailable"),
        (json!("temporarily_unavailable"), 503, "provider_unavailable"),
    ] {
        app.provider.behave(Behaviour::Json(with(sound.clone(), &json!({ "error": error }))));
        let (answer, _) = timed(&app).await;
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (status, name), "{error}");
    }
    assert_eq!(app.database.rows().await, [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_and_the_token_is_the_one_parameter() {
    let app = App::start().await;
    for number in 0..10 {
        let subject = format!("subject-{number}");
        app.sign_in(&claims(&subject, &format!("{subject}@example.com"))).await;
    }
    assert_eq!(app.provider.connections(), 1);
    let requests = app.provider.requests();
    assert!(
        requests
            .iter()
            .all(|call| call.method == "GET" && call.body.is_empty() && call.parameters().len() == 1)
    );
    assert!(requests.iter().all(|call| call.token().is_some() && call.header("referer").is_none()));
}
