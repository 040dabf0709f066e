//! Provider tokens that must be revoked: their origin and their revocation.

mod deletion;
mod operators;
mod races;
mod requests;

use figment::Figment;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::app::{Answer, App};
use crate::support::process::eventually;
use crate::support::provider::Provider;
use crate::support::provider::apple::{Issued, KEY_ID, TEAM_ID, id_token, private_key};

/// The client ids of the app and of the web page.
const APP: &str = "com.example.app";
const WEB: &str = "com.example.web";

/// Returns the settings of Apple at this URL.
fn settings(url: &str) -> Value {
    json!({
        "preset": "apple", "client_id": APP, "additional_client_ids": [WEB], "jwks_url": format!("{url}/auth/keys"),
        "token_url": format!("{url}/auth/token"), "revocation_url": format!("{url}/auth/revoke"),
        "team_id": TEAM_ID, "key_id": KEY_ID, "private_key": private_key(),
    })
}

/// Returns the test provider's URL from the settings.
fn provider_url(figment: &Figment) -> String {
    let url: String = figment.extract_inner("idp.tokeninfo_url").unwrap();
    url.trim_end_matches("/tokeninfo").to_owned()
}

/// Starts a service with Apple beside its other providers.
async fn with_apple() -> App {
    App::start_with(apple).await
}

fn apple(figment: Figment) -> Figment {
    let settings = settings(&provider_url(&figment));
    figment.merge(("providers.apple", settings))
}

/// Returns the body that an app posts after Apple's SDK has signed in.
fn posted(provider: &Provider, subject: &str) -> Value {
    let email = format!("{subject}@example.com");
    json!({
        "id_token": id_token(subject, &email, APP), "authorization_code": provider.apple_code(subject, APP, None),
    })
}

async fn sign_in(app: &App, subject: &str) -> Answer {
    let answer = app.post("apple", &posted(&app.provider, subject)).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer
}

/// Returns the states of the stored codes and tokens.
async fn states(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT state FROM provider_tokens ORDER BY created_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

/// Waits until the states are as expected.
async fn until(pool: &PgPool, expected: &[&str]) {
    eventually(&format!("the states are {expected:?}"), async || {
        (states(pool).await == expected).then_some(())
    })
    .await;
}

/// Starts a service that has fetched Apple's keys, so that the next call is an exchange.
async fn with_keys_of_apple() -> App {
    let app = with_apple().await;
    sign_in(&app, "grace").await;
    until(&app.database.pool, &["kept"]).await;
    app
}

/// Waits until an attempt has failed, and returns the failure of the only row.
async fn failure(pool: &PgPool) -> String {
    eventually("an attempt fails", async || -> Option<String> {
        value!(
            pool,
            "SELECT max(failure) FROM provider_tokens WHERE state <> 'kept'"
        )
    })
    .await
}

/// Ages all codes and tokens by this many seconds. Rows that become due are due from now: instances
/// have already passed earlier times.
async fn pass(pool: &PgPool, seconds: i32) {
    run!(
        pool,
        "UPDATE provider_tokens SET created_at = created_at - $1 * interval '1 second',
                due_at = due_at - $1 * interval '1 second',
                next_attempt_at = greatest(next_attempt_at - $1 * interval '1 second', least(next_attempt_at, now()))",
        seconds
    );
}

/// Returns the users whose tokens Apple has revoked, and the users whose tokens it has not.
fn revoked(provider: &Provider) -> (Vec<String>, Vec<String>) {
    let (revoked, valid): (Vec<_>, Vec<_>) = provider
        .apple_tokens()
        .into_iter()
        .partition(|token| token.revoked);
    let subjects = |tokens: Vec<Issued>| {
        let mut subjects: Vec<_> = tokens.into_iter().map(|token| token.subject).collect();
        subjects.sort_unstable();
        subjects
    };
    (subjects(revoked), subjects(valid))
}
