//! `name` and `picture`: shown, so cleaned or left out, and never a reason to fail.

use serde_json::{Value, json};

use super::assert_accepted;
use crate::support::app::App;
use crate::support::token::{claims, with};

/// What becomes of a claim in the user of a first sign-in.
async fn shown(app: &App, number: usize, name: &str, value: &Value) -> Value {
    let subject = format!("{name}-{number}");
    let claims = with(claims(&subject, &format!("{subject}@example.com")), &json!({ name: value }));
    assert_accepted(app, "idp", &claims).await.json()["user"][name].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_shown_without_control_characters_and_surrounding_blanks() {
    let app = App::start().await;
    for (number, (name, expected)) in [
        (json!("Zoë 李 🦀"), json!("Zoë 李 🦀")),
        (json!("  Ada  "), json!("Ada")),
        (json!("A\0da"), json!("Ada")),
        (json!("\u{1b}[31mAda\r\n\t"), json!("[31mAda")),
        (json!("\0 Ada \0"), json!("Ada")),
        (json!("\u{85}\u{9f}Ada"), json!("Ada")),
        (json!("<script>alert(1)</script>"), json!("<script>alert(1)</script>")),
        (json!("{{ 7*7 }}"), json!("{{ 7*7 }}")),
        (json!("'; DROP TABLE users; --"), json!("'; DROP TABLE users; --")),
        (json!("n".repeat(10_000)), json!("n".repeat(200))),
        (json!("é".repeat(201)), json!("é".repeat(200))),
        (json!(format!("{} surname", "n".repeat(199))), json!("n".repeat(199))),
        (json!("\0"), Value::Null),
        (json!("\0 \0"), Value::Null),
        (json!(" \u{3000}\n"), Value::Null),
        (json!(""), Value::Null),
        (json!(7), Value::Null),
        (json!(["Ada"]), Value::Null),
        (json!({ "given": "Ada" }), Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(shown(&app, number, "name", &name).await, expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_shown_only_when_it_is_an_https_address() {
    let app = App::start().await;
    let longest = format!("https://pictures.example/{}", "p".repeat(2048 - 25));
    for (number, (picture, kept)) in [
        ("https://pictures.example/ada?size=96&v=1".to_owned(), true),
        (format!("{longest}p"), false),
        (longest, true),
        ("http://pictures.example/ada".to_owned(), false),
        ("//pictures.example/ada".to_owned(), false),
        ("javascript:alert(1)".to_owned(), false),
        ("data:image/png;base64,AAAA".to_owned(), false),
        ("https://pictures.example/a da".to_owned(), false),
        ("https://pictures.example/\0".to_owned(), false),
        ("https://pictures.example/\r\nSet-Cookie: a=b".to_owned(), false),
        ("https://pictures.example/é".to_owned(), false),
        (String::new(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let expected = if kept { json!(picture) } else { Value::Null };
        assert_eq!(shown(&app, number, "picture", &json!(picture)).await, expected, "{picture:?}");
    }
    for (number, picture) in [json!(1), json!(["https://pictures.example/ada"]), json!({})].iter().enumerate()
    {
        assert_eq!(shown(&app, 100 + number, "picture", picture).await, Value::Null, "{picture}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_turns_odd_leaves_the_known_one_in_place() {
    let app = App::start().await;
    let sound = claims("subject-1", "ada@example.com");
    let before = assert_accepted(&app, "idp", &sound).await.json()["user"].clone();
    let odd = with(sound, &json!({ "name": "\0", "picture": "\0", "email": "a@x\0" }));
    assert_eq!(assert_accepted(&app, "idp", &odd).await.json()["user"], before);
}
