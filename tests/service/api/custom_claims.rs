//! Claims that the product's backend sets: the access tokens that contain them, and their limits.

use rocket::futures::future::join_all;
use serde_json::{Value, json};
use vestibule::domain::custom_claims::CustomClaims;

use crate::support::app::{Answer, App};
use crate::support::token::{claims, with};

/// The names of the claims that every access token has.
const OWN: [&str; 8] = ["aud", "client_id", "exp", "iat", "iss", "jti", "sid", "sub"];

/// Returns the access token's claims except [`OWN`].
fn custom(answer: &Answer) -> Value {
    let mut told = answer.payload();
    for name in OWN {
        assert!(
            told.as_object_mut().unwrap().remove(name).is_some(),
            "{name}"
        );
    }
    told
}

/// Stores claims without a check.
async fn set(app: &App, subject: &str, claims: &str) {
    let set = "UPDATE users SET claims = $2::jsonb
               WHERE id = (SELECT user_id FROM identities WHERE provider = 'idp' AND subject = $1)";
    assert_eq!(
        run!(&app.database.pool, set, subject, claims).rows_affected(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_claims_are_in_tokens_of_refreshes_and_all_sign_ins() {
    let app = App::start().await;
    let ada = claims("ada", "ada@example.com");
    let first = app.sign_in(&ada).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    assert_eq!(
        (first.outcome(), custom(&first)),
        ("created".into(), json!({}))
    );
    assert_eq!(first.json()["user"]["claims"], json!({}));
    let admin = json!({ "roles": ["admin"], "plan": { "seats": 3 }, "beta": null });
    set(&app, "ada", &admin.to_string()).await;

    let refreshed = app.refresh(&first.refresh_token()).await;
    let repeated = app.refresh(&first.refresh_token()).await;
    assert_eq!(refreshed.refresh_token(), repeated.refresh_token());
    for answer in [&refreshed, &repeated] {
        assert_eq!(custom(answer), admin);
    }
    let elsewhere = with(ada.clone(), &json!({ "iss": "https://second.example" }));
    for (provider, claimed, outcome) in [
        ("idp", &ada, "signed_in"),
        ("second", &elsewhere, "linked"),
        // Sign-ins that change the user, only the identity, and neither.
        (
            "idp",
            &with(ada.clone(), &json!({ "name": "Ada King" })),
            "signed_in",
        ),
        (
            "idp",
            &with(ada.clone(), &json!({ "email": "grace@example.com" })),
            "signed_in",
        ),
        ("second", &elsewhere, "signed_in"),
    ] {
        let answer = app.sign_in_at(provider, claimed).await;
        assert_eq!(
            (answer.outcome().as_str(), custom(&answer)),
            (outcome, admin.clone()),
            "{claimed}"
        );
        let me = app.get(&answer.access_token(), "/api/v1/me").await.json();
        assert_eq!(
            (&me["id"], &me["claims"]),
            (&first.json()["user"]["id"], &admin)
        );
        assert_eq!(answer.json()["user"]["claims"], admin);
    }
    assert_eq!(
        custom(&app.refresh(&grace.refresh_token()).await),
        json!({}),
        "another user has none"
    );
    assert_eq!(
        app.get(&grace.access_token(), "/api/v1/me").await.json()["claims"],
        json!({})
    );

    set(&app, "ada", r#"{"roles":[]}"#).await;
    let refreshed = app.refresh(&refreshed.refresh_token()).await;
    assert_eq!(custom(&refreshed), json!({ "roles": [] }));
    app.database.run("UPDATE users SET claims = NULL").await;
    assert_eq!(
        custom(&app.refresh(&refreshed.refresh_token()).await),
        json!({})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn users_who_share_a_statement_have_their_own_claims() {
    const PEOPLE: usize = 30;
    let app =
        App::start_with(|figment| figment.merge(("databases.vestibule.max_connections", 1))).await;
    let of = |number: usize| {
        claims(
            &format!("subject-{number}"),
            &format!("{number}@example.com"),
        )
    };
    for number in 0..PEOPLE {
        app.sign_in(&of(number)).await;
        if !number.is_multiple_of(3) {
            set(
                &app,
                &format!("subject-{number}"),
                &json!({ "number": number }).to_string(),
            )
            .await;
        }
    }
    let claimed: Vec<_> = (0..PEOPLE).map(of).collect();
    let signed_in = app
        .together(claimed.iter().map(|claimed| app.sign_in(claimed)))
        .await;
    let tokens: Vec<_> = signed_in.iter().map(Answer::refresh_token).collect();
    let refreshed = join_all(tokens.iter().map(|token| app.refresh(token))).await;
    assert_eq!((signed_in.len(), refreshed.len()), (PEOPLE, PEOPLE));
    for answers in [signed_in, refreshed] {
        for (number, answer) in answers.iter().enumerate() {
            let expected = if number.is_multiple_of(3) {
                json!({})
            } else {
                json!({ "number": number })
            };
            assert_eq!(custom(answer), expected);
            let me = app.get(&answer.access_token(), "/api/v1/me").await.json();
            assert_eq!(
                (&me["email"], &me["claims"]),
                (&claimed[number]["email"], &expected)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_stored_claim_wins_over_one_of_the_service() {
    let app = App::start().await;
    let ada = claims("ada", "ada@example.com");
    let first = app.sign_in(&ada).await;
    let victim = app
        .sign_in(&claims("grace", "grace@example.com"))
        .await
        .user_id();
    let hostile = json!({
        "sub": victim, "SUB": victim, "Sub": victim, "\u{17f}ub": victim, "iss": "https://other.example", "aud": ["x"],
        "exp": 9_999_999_999_u64, "iat": 0, "nbf": 0, "jti": "x", "sid": victim, "client_id": "x", "azp": "x",
        "scope": "admin", "email": "grace@example.com", "email_verified": true, "kid": "x", "role": "reader",
    });
    set(&app, "ada", &hostile.to_string()).await;
    for answer in [
        app.sign_in(&ada).await,
        app.refresh(&first.refresh_token()).await,
    ] {
        assert_eq!(custom(&answer), json!({ "role": "reader" }));
        let told = answer.payload_text();
        assert_eq!(told.to_lowercase().matches("ub\":").count(), 1, "{told}");
        assert!(
            !told.contains(&victim) && told.contains(&first.user_id()),
            "{told}"
        );
        let me = app.get(&answer.access_token(), "/api/v1/me").await;
        assert_eq!(me.json()["id"], first.json()["user"]["id"], "{}", me.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn permitted_claims_reach_the_access_token_exactly_as_sent() {
    let app = App::start().await;
    let ada = claims("ada", "ada@example.com");
    app.sign_in(&ada).await;
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(992));
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(15), "]".repeat(15));
    for text in [
        "{}",
        r#"{"z":1,"a":[1,-0.5,100.0,0.00001,9007199254740991,-9007199254740991,true,null],"":{"sub":"x"}}"#,
        r#"{"\u0001\"\\":"\ud83d\ude00\u007f\u2028","roles":["<b>","'; DROP TABLE users --"]}"#,
        r#"{"a":{"b":1},"b":{"a":1}}"#,
        &long,
        &deep,
    ] {
        let sent = CustomClaims::parse(text).unwrap();
        set(&app, "ada", &sent.json()).await;
        let answer = app.sign_in(&ada).await;
        assert_eq!(
            custom(&answer),
            serde_json::from_str::<Value>(text).unwrap()
        );
        assert_eq!(
            app.get(&answer.access_token(), "/api/v1/me").await.status,
            200,
            "{text}"
        );
    }
}
