//! A phone's requests for these tests.

use std::sync::LazyLock;

use reqwest::Client;
use serde_json::{Value, json};

use crate::support::process::Process;
use crate::support::provider::Provider;
use crate::support::token;

/// One client for all tests. It keeps no connection, since each test has a runtime of its own.
pub static CLIENT: LazyLock<Client> =
    LazyLock::new(|| Client::builder().pool_max_idle_per_host(0).build().unwrap());

/// Signs in with claims that the provider confirms, and with more in the body. Returns the outcome
/// or the error.
pub async fn sign_in(
    service: &Process,
    provider: &Provider,
    claims: Value,
    more: &Value,
) -> (String, Value) {
    let token = provider.token(claims);
    let answer = service
        .sign_in("idp", &token::with(json!({ "id_token": token }), more))
        .await;
    (answer.outcome() + &answer.error(), answer.json())
}
