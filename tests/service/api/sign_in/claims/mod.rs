//! What the provider's answer may say, and what is refused.

mod answer;
mod audience;
mod dates;
mod early;
mod hosted_domain;
mod issuer;
mod nonce;
mod profile;
mod subject;

use serde_json::Value;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::claims;

/// Sound claims, one of them replaced; unlike with `token::with`, a `null` stays a `null`.
fn changed(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims("subject-1", "ada@example.com");
    claims[name] = value.into();
    claims
}

/// Sound claims, one of them missing.
fn without(name: &str) -> Value {
    let mut claims = claims("subject-1", "ada@example.com");
    claims.as_object_mut().unwrap().remove(name).expect("the claim was there");
    claims
}

/// The provider is asked, and its answer is refused so; no row is written.
async fn assert_refused(app: &App, provider: &str, claims: &Value, status: u16, error: &str) {
    let (rows, calls) = (app.database.rows().await, app.provider.calls());
    let answer = app.sign_in_at(provider, claims).await;
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (status, error), "{claims}");
    assert_problem(&answer, status, error);
    assert_eq!(app.provider.calls(), calls + 1, "{claims}");
    assert_eq!(app.database.rows().await, rows, "{claims}");
}

/// The provider's answer is good enough for a session.
async fn assert_accepted(app: &App, provider: &str, claims: &Value) -> Answer {
    let answer = app.sign_in_at(provider, claims).await;
    let accepted = [200, 201].contains(&answer.status.as_u16());
    assert!(accepted && answer.json()["access_token"].is_string(), "{claims} {}", answer.text);
    answer
}
