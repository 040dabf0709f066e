//! Rules for every route.

mod client_address;
mod cookies;
mod http1;
mod ops;
mod rate_limit;
mod reject_empty_segments;
mod unread_bodies;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::{Answer, App};

/// Signs in with further headers.
async fn sign_in_with(app: &App, claims: &Value, headers: &[(&str, &str)]) -> Answer {
    post_with(app, &json!({ "id_token": app.token(claims) }), headers).await
}

/// Posts to the default provider's path with further headers.
async fn post_with(app: &App, body: &Value, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    app.send_with(
        Method::POST,
        "/api/v1/auth/oauth/idp",
        &headers,
        body.to_string(),
    )
    .await
}
