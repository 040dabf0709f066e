//! `sub`: who it is. 1 to 255 visible ASCII characters, case-sensitive (OIDC Core §2).

use serde_json::{Value, json};

use super::{assert_accepted, assert_refused, changed, without};
use crate::support::app::App;
use crate::support::token::{claims, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_that_names_nobody_is_refused() {
    let app = App::start().await;
    for subject in
        [Value::Null, json!(""), json!("   "), json!(1), json!(["subject-1"]), json!({}), json!(true)]
    {
        assert_refused(&app, "idp", &changed("sub", subject), 401, "invalid_token").await;
    }
    assert_refused(&app, "idp", &without("sub"), 401, "invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_of_255_characters_is_accepted_and_a_longer_or_unprintable_one_is_refused() {
    let app = App::start().await;
    let longest = "s".repeat(255);
    let answer = assert_accepted(&app, "idp", &changed("sub", longest.as_str())).await;
    assert_eq!(answer.json()["identity"]["subject"], longest);
    for subject in [
        "s".repeat(256),
        "s".repeat(10_000),
        "a\0b".to_owned(),
        "\0".to_owned(),
        "a\nb".to_owned(),
        "a b".to_owned(),
        "subject-1 ".to_owned(),
        "é".to_owned(),
        "\u{202e}".to_owned(),
        "\u{7f}".to_owned(),
    ] {
        assert_refused(&app, "idp", &changed("sub", subject), 401, "invalid_token").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subjects_that_differ_in_case_are_two_people() {
    let app = App::start().await;
    let first = assert_accepted(&app, "idp", &claims("AbC", "first@example.com")).await;
    let second = assert_accepted(&app, "idp", &claims("aBc", "second@example.com")).await;
    assert_ne!(first.user_id(), second.user_id());
    assert_eq!(app.database.rows().await, [2, 2, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_joined_with_anybody_on_having_no_address() {
    let app = App::start().await;
    let addresses =
        [Value::Null, json!(""), json!(" "), json!(1), json!(["ada@example.com"]), json!("not one")];
    for (number, email) in addresses.iter().enumerate() {
        for twin in ["a", "b"] {
            let mut claims = claims(&format!("{number}-{twin}"), "");
            claims["email"] = email.clone();
            let answer = assert_accepted(&app, "idp", &claims).await;
            assert_eq!(answer.outcome(), "created", "{email}");
            assert_eq!(answer.json()["user"]["email"], Value::Null, "{email}");
            assert_eq!(answer.json()["user"]["email_verified"], false, "{email}");
        }
    }
    let absent = with(claims("absent", ""), &json!({ "email": null, "email_verified": null }));
    assert_eq!(assert_accepted(&app, "idp", &absent).await.outcome(), "created");
    let [users, identities, ..] = app.database.rows().await;
    assert_eq!((users, identities), (13, 13));
}
