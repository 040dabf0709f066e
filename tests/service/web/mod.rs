//! What holds for every route.

mod client_address;
mod http1;
mod ops;
mod rate_limit;
mod reject_empty_segments;

use serde_json::{Value, json};

use crate::support::app::{Answer, App};

/// Signs in with further headers.
async fn sign_in_with(app: &App, claims: &Value, headers: &[(&str, &str)]) -> Answer {
    post_with(app, &json!({ "id_token": app.token(claims) }), headers).await
}

/// Posts to the default provider's path with further headers.
async fn post_with(app: &App, body: &Value, headers: &[(&str, &str)]) -> Answer {
    let mut request = reqwest::Client::new()
        .post(format!("{}/api/v1/auth/oauth/idp", app.url))
        .header("Content-Type", "application/json")
        .body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    App::answer(request.send().await.expect("the service answers")).await
}
