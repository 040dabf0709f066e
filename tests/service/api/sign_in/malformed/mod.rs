//! Malformed requests: all get the same form of error, before any provider call.

mod body;
mod headers;
mod leaks;
mod media;
mod method;
mod panics;
mod wire;

use reqwest::Method;

use crate::support::app::App;
use crate::support::problem::assert_problem;

const PATH: &str = "/api/v1/auth/oauth/idp";

/// Returns the first lines of a sign-in.
fn head() -> String {
    format!("POST {PATH} HTTP/1.1\r\nContent-Type: application/json\r\n")
}

/// Asserts that the body is refused with this error, without a provider call and without a new row.
async fn assert_refused(
    app: &App,
    content_type: Option<&str>,
    body: impl AsRef<[u8]>,
    status: u16,
    error: &str,
) {
    let body = body.as_ref();
    let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
    let rows = app.database.rows().await;
    let calls = app.provider.calls();
    let answer = app
        .send(Method::POST, PATH, content_type, body.to_vec())
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.error().as_str()),
        (status, error),
        "{shown}"
    );
    assert_problem(&answer, status, error);
    assert_eq!(app.provider.calls(), calls, "{shown}");
    assert_eq!(app.database.rows().await, rows, "{shown}");
}

/// Asserts that the JSON body is refused as malformed.
async fn assert_malformed(app: &App, body: impl AsRef<[u8]>) {
    assert_refused(app, Some("application/json"), body, 400, "invalid_request").await;
}
