//! People's phones, as far as it takes them.

use std::sync::LazyLock;

use reqwest::Client;
use serde_json::{Value, json};

use crate::support::provider::Provider;
use crate::support::token;

/// One for all, which keeps no connection: each test has a runtime of its own.
pub static CLIENT: LazyLock<Client> =
    LazyLock::new(|| Client::builder().pool_max_idle_per_host(0).build().unwrap());

/// Posts JSON, and answers the status and the answer, if there is one.
pub async fn post(url: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let request = CLIENT.post(format!("{url}{path}"));
    let request = request.header("Content-Type", "application/json").body(body.to_string());
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, serde_json::from_str(&answer.text().await.ok()?).unwrap_or_default()))
}

/// Signs in with claims that the provider vouches for, and more in the body; answers the outcome or error.
pub async fn sign_in(url: &str, provider: &Provider, claims: Value, more: &Value) -> (String, Value) {
    let token = token::opaque();
    provider.accept(&token, claims);
    let body = token::with(json!({ "id_token": token }), more);
    let (_, answer) = post(url, "/api/v1/auth/oauth/idp", &body).await.expect("it answers");
    let outcome = answer["error"].as_str().or(answer["outcome"].as_str());
    (outcome.unwrap_or_default().to_owned(), answer)
}
