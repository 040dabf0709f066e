//! Storage of a provider's claims. `tests/provider/verify` has the verdict on each claim at each
//! provider.

use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::process::eventually;
use crate::support::token::{CLIENT_ID, ISSUER, claims, encode, now, with};

const RS256: &str = r#"{"alg":"RS256","typ":"JWT"}"#;
const ANDROID: &str = "android.example";

/// Returns sound claims with one replaced; unlike with `token::with`, a `null` stays a `null`.
fn changed(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims("subject-1", "ada@example.com");
    claims[name] = value.into();
    claims
}

/// Asserts that the provider is called, its response is refused with this error, and no row is
/// written.
async fn assert_refused(app: &App, provider: &str, claims: &Value, status: u16, error: &str) {
    let rows = app.database.rows().await;
    let calls = app.provider.calls();
    assert_problem(&app.sign_in_at(provider, claims).await, status, error);
    assert_eq!(app.provider.calls(), calls + 1, "{claims}");
    assert_eq!(app.database.rows().await, rows, "{claims}");
}

/// Asserts that the provider's response opens a session.
async fn assert_accepted(app: &App, provider: &str, claims: &Value) -> Answer {
    let answer = app.sign_in_at(provider, claims).await;
    let accepted = [200, 201].contains(&answer.status.as_u16());
    assert!(
        accepted && answer.json()["access_token"].is_string(),
        "{claims} {}",
        answer.text
    );
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn each_claim_that_is_refused_is_told_and_changes_nothing() {
    let app = App::start_with(|figment| {
        let settings = json!({ "allowed_domains": "corp.example", "issuers": "https://second.example", "max_token_age": 3600 });
        figment.merge(("providers.second", settings))
    })
    .await;
    let access_token = json!({
        "azp": CLIENT_ID, "aud": CLIENT_ID, "sub": "subject-1", "scope": "openid email",
        "exp": (now() + 3600).to_string(), "expires_in": "3600", "email": "ada@example.com",
    });
    for (claims, error, detail) in [
        (
            changed("iss", format!("{ISSUER}/")),
            "issuer_mismatch",
            "`iss` is missing or is not an issuer of this",
        ),
        (
            changed("aud", "client-2.example"),
            "audience_mismatch",
            "`aud` must hold only client ids",
        ),
        (
            changed("aud", Value::Null),
            "audience_mismatch",
            "`aud` must hold only client ids",
        ),
        (
            changed("azp", "client-2.example"),
            "audience_mismatch",
            "`azp` is not a client id",
        ),
        (
            changed("exp", now() - 60),
            "token_expired",
            "`exp` has passed",
        ),
        (
            changed("exp", Value::Null),
            "invalid_token",
            "`exp` is missing",
        ),
        (
            changed("iat", now() - 24 * 3600 - 1),
            "token_expired",
            "`iat` is too old",
        ),
        (
            changed("iat", now() + 120),
            "invalid_token",
            "`iat` is in the future: the clock",
        ),
        (
            changed("nbf", now() + 120),
            "invalid_token",
            "`nbf` is in the future: the clock",
        ),
        (
            changed("nbf", "soon"),
            "invalid_token",
            "`nbf` is not a number of seconds",
        ),
        (changed("nonce", "n"), "nonce_mismatch", ""),
        (changed("sub", " "), "invalid_token", "`sub`"),
        (
            access_token,
            "invalid_token",
            "this is an access token; send the id_token",
        ),
    ] {
        assert_refused(&app, "idp", &claims, 401, error).await;
        let told = app.sign_in(&claims).await.json()["detail"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(told.starts_with(detail), "{told}");
    }
    let of_second = changed("iss", "https://second.example");
    assert_refused(&app, "second", &of_second, 403, "domain_not_allowed").await;
    let corporate = with(of_second, &json!({ "hd": "Corp.example" }));
    let old = with(corporate.clone(), &json!({ "iat": now() - 3601 }));
    assert_refused(&app, "second", &old, 401, "token_expired").await;
    assert_accepted(&app, "second", &corporate).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_belongs_to_the_application_that_asked_for_the_token() {
    let app =
        App::start_with(|figment| figment.merge(("idp.additional_client_ids", ANDROID))).await;
    assert_accepted(&app, "idp", &changed("azp", ANDROID)).await;
    assert_accepted(
        &app,
        "idp",
        &with(claims("subject-1", ""), &json!({ "azp": null })),
    )
    .await;
    let clients: Vec<String> = app
        .database
        .values("SELECT client_id FROM sessions ORDER BY created_at")
        .await;
    assert_eq!(clients, [ANDROID, CLIENT_ID]);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_mean_nothing_here_change_nothing() {
    let app = App::start().await;
    let plain = assert_accepted(&app, "idp", &claims("subject-1", "ada@example.com")).await;
    let more = json!({
        "at_hash": "wrong", "user_id": "00000000-0000-0000-0000-000000000000", "role": "admin",
        "preferred_username": "root", "upn": "root@example.com", "\0": "\0", "groups": ["staff"],
    });
    let answer = assert_accepted(
        &app,
        "idp",
        &with(claims("subject-1", "ada@example.com"), &more),
    )
    .await;
    assert_eq!(answer.json()["user"], plain.json()["user"]);
    assert_eq!(answer.json()["identity"], plain.json()["identity"]);
}

/// Returns the member of a new user that a claim becomes.
async fn shown(app: &App, number: usize, name: &str, value: &Value) -> Value {
    let subject = format!("{name}-{number}");
    let claims = with(
        claims(&subject, &format!("{subject}@example.com")),
        &json!({ name: value }),
    );
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
        (
            json!("\u{202e}adA\u{202c} \u{2066}Lovelace\u{2069}\u{200f}"),
            json!("adA Lovelace"),
        ),
        (json!("\u{61c}\u{200e}"), Value::Null),
        (
            json!("<script>alert(1)</script>"),
            json!("<script>alert(1)</script>"),
        ),
        (json!("{{ 7*7 }}"), json!("{{ 7*7 }}")),
        (
            json!("'; DROP TABLE users; --"),
            json!("'; DROP TABLE users; --"),
        ),
        (json!("n".repeat(10_000)), json!("n".repeat(200))),
        (json!("é".repeat(201)), json!("é".repeat(200))),
        (
            json!(format!("{} surname", "n".repeat(199))),
            json!("n".repeat(199)),
        ),
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
        (
            "https://pictures.example/\r\nSet-Cookie: a=b".to_owned(),
            false,
        ),
        ("https://pictures.example/é".to_owned(), false),
        (String::new(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let expected = if kept { json!(picture) } else { Value::Null };
        assert_eq!(
            shown(&app, number, "picture", &json!(picture)).await,
            expected,
            "{picture:?}"
        );
    }
    for (number, picture) in [json!(1), json!(["https://pictures.example/ada"]), json!({})]
        .iter()
        .enumerate()
    {
        assert_eq!(
            shown(&app, 100 + number, "picture", picture).await,
            Value::Null,
            "{picture}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_turns_odd_leaves_the_known_one_in_place() {
    let app = App::start().await;
    let sound = claims("subject-1", "ada@example.com");
    let before = assert_accepted(&app, "idp", &sound).await.json()["user"].clone();
    let odd = with(
        sound,
        &json!({ "name": "\0", "picture": "\0", "email": "a@x\0" }),
    );
    assert_eq!(
        assert_accepted(&app, "idp", &odd).await.json()["user"],
        before
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_recorded_even_if_its_claims_are_unstorable() {
    let app = App::start().await;
    let odd = json!({ "email": "a\0da\u{1b}@example.com", "iss": "\0", "aud": "a".repeat(5000) });
    let answer = app
        .post(
            "idp",
            &json!({ "id_token": encode(RS256, &odd.to_string()) }),
        )
        .await;
    assert_problem(&answer, 401, "issuer_mismatch");
    let (reason, email, detail) = eventually("the refusal is recorded", async || {
        let refusals = "SELECT reason, email, detail FROM events WHERE kind = 'sign_in_refused'";
        app.database
            .all::<(String, Option<String>, Value)>(refusals)
            .await
            .pop()
    })
    .await;
    assert_eq!(
        (reason.as_str(), email.as_deref()),
        ("issuer_mismatch", Some("ada@example.com"))
    );
    assert_eq!(detail["claimed_audience"], "a".repeat(255));
}
