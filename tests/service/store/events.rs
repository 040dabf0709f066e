//! Every sign-in and every refusal is one event, with what staff need to understand it and no more.

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::provider::Behaviour;
use crate::support::token::{claims, encode, now};

type Event = (String, Option<String>, Option<String>, Option<String>, Option<String>, String, Option<Value>);

/// The events, once there are that many: refusals are written off the caller's path.
async fn events(app: &App, count: usize) -> Vec<Event> {
    for _ in 0..600 {
        let events: Vec<Event> = sqlx::query_as(
            "SELECT kind, reason, provider, email, host(ip), request_id, detail FROM events ORDER BY created_at, id",
        )
        .fetch_all(&app.database.pool)
        .await
        .unwrap();
        if events.len() >= count {
            return events;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("there are not {count} events")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_remembered_with_what_it_claimed_and_why() {
    let app = App::start().await;
    let claimed = json!({ "iss": "https://other.example", "aud": "another-app", "email": "Ada@Example.com", "exp": now() + 60 });
    let foreign = encode(r#"{"alg":"RS256"}"#, &claimed.to_string());
    let refused = app.post("idp", &json!({ "id_token": foreign })).await;
    app.provider.behave(Behaviour::status(503));
    app.sign_in(&claims("ada", "ada@example.com")).await;

    let events = events(&app, 2).await;
    let ip = Some("127.0.0.1".to_owned());
    let (kind, idp) = ("sign_in_refused".to_owned(), Some("idp".to_owned()));
    let request_id = refused.json()["request_id"].as_str().unwrap().to_owned();
    let detail = json!({ "claimed_issuer": "https://other.example", "claimed_audience": "another-app" });
    let email = Some("ada@example.com".to_owned());
    let expected =
        (kind.clone(), Some("issuer_mismatch".into()), idp.clone(), email, ip, request_id, Some(detail));
    assert_eq!(events[0], expected);
    assert_eq!(
        (&events[1].0, events[1].1.as_deref(), &events[1].2),
        (&kind, Some("provider_unavailable"), &idp)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_holds_a_token() {
    let app = App::start().await;
    let token = app.token(&claims("ada", "ada@example.com"));
    let answer = app.post("idp", &json!({ "id_token": token })).await;
    app.provider.revoke(&token);
    app.post("idp", &json!({ "id_token": token })).await;
    app.refresh(&answer.refresh_token()).await;
    let rows = events(&app, 2).await;
    for secret in [token, answer.refresh_token(), answer.access_token()] {
        assert!(!format!("{rows:?}").contains(&secret));
        let everything: String = sqlx::query_scalar(
            "SELECT (SELECT string_agg(s::text, '') FROM sessions s)
                 || (SELECT string_agg(u::text, '') FROM users u) || (SELECT string_agg(i::text, '') FROM identities i)",
        )
        .fetch_one(&app.database.pool)
        .await
        .unwrap();
        assert!(!everything.contains(&secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_that_wait_to_be_written_are_written_before_the_service_ends() {
    const REFUSALS: i64 = 200;
    let mut app = App::start().await;
    let token = encode(r#"{"alg":"none"}"#, "{}");
    for _ in 0..REFUSALS {
        assert_eq!(app.post("idp", &json!({ "id_token": token })).await.error(), "invalid_token");
    }
    app.stop().await;
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, REFUSALS);
}
