//! A handler that panics: it must fail its own request only.

use reqwest::Method;
use rocket::{get, routes};

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::problem::assert_problem;
use crate::support::token::claims;

const MESSAGE: &str = "what-was-being-worked-on";

#[get("/panics")]
fn panics() -> &'static str {
    panic!("{MESSAGE}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_yields_a_generic_500_and_service_continues() {
    let database = Database::create().await;
    let app = App::start_altered(
        database,
        |figment| figment,
        |rocket| rocket.mount("/api/v1", routes![panics]),
    )
    .await;
    for _ in 0..10 {
        let answer = app.send(Method::GET, "/api/v1/panics", None, "").await;
        assert_problem(&answer, 500, "internal_error");
        assert!(
            !answer.text.contains(MESSAGE) && !answer.text.contains(".rs"),
            "{}",
            answer.text
        );
    }
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}
