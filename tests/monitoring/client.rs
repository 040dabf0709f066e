//! People's phones, as far as it takes them.

use std::sync::LazyLock;

use reqwest::Client;
use serde_json::{Value, json};

use crate::support::process::Process;
use crate::support::provider::Provider;
use crate::support::token;

/// One for all, which keeps no connection: each test has a runtime of its own.
pub static CLIENT: LazyLock<Client> =
    LazyLock::new(|| Client::builder().pool_max_idle_per_host(0).build().unwrap());

/// Signs in with claims that the provider vouches for, and more in the body; answers the outcome or error.
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
