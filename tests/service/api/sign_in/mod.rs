//! `POST /api/v1/auth/oauth/<provider>`: its responses and its effects.

mod claims;
mod malformed;
mod options;
mod path;

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::token::{at, claims, with};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_sign_in_creates_a_user_and_later_ones_reuse() {
    let app = App::start().await;
    let first = app.sign_in(&claims("subject-1", "Ada@Example.com")).await;
    assert_eq!(
        (first.status.as_u16(), first.outcome().as_str()),
        (201, "created"),
        "{}",
        first.text
    );
    assert_eq!(app.database.rows().await, [1, 1, 1]);
    let user = &first.json()["user"];
    assert_eq!(user["email"], "ada@example.com");
    assert_eq!(user["email_verified"], true);
    assert_eq!(first.json()["identity"]["email"], "Ada@Example.com");

    let second = app.sign_in(&claims("subject-1", "Ada@Example.com")).await;
    assert_eq!(
        (second.status.as_u16(), second.outcome().as_str()),
        (200, "signed_in"),
        "{}",
        second.text
    );
    assert_eq!(second.user_id(), first.user_id());
    assert_eq!(app.database.rows().await, [1, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_subject_is_linked_only_by_a_verified_address() {
    let app = App::start().await;
    let first = app.sign_in(&claims("subject-1", "ada@example.com")).await;
    let linked = app
        .sign_in_at("second", &at("second", "subject-2", "ADA@example.com"))
        .await;
    assert_eq!(
        (linked.status.as_u16(), linked.outcome().as_str()),
        (200, "linked"),
        "{}",
        linked.text
    );
    assert_eq!(linked.user_id(), first.user_id());

    let before = app.database.rows().await;
    for unverified in [
        json!("false"),
        json!(false),
        Value::Null,
        json!("yes"),
        json!(1),
        json!("TRUE"),
    ] {
        let stranger = with(
            claims("subject-3", "ada@example.com"),
            &json!({ "email_verified": unverified }),
        );
        assert_problem(&app.sign_in(&stranger).await, 409, "link_required");
    }
    assert_eq!(app.database.rows().await, before);
}
