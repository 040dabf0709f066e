//! A user whom staff delete.

use serde_json::json;
use uuid::Uuid;
use vestibule::admin::changes::decision::Refused;
use vestibule::admin::changes::{Change, Outcome};

use super::{STAFF, act, alive, apply, events, make, merge, preview, user};
use crate::support::app::App;
use crate::support::process::eventually;
use crate::support::token::{claims, encode, now};

async fn delete(app: &App, user: Uuid) -> Outcome {
    make(app, Change::Delete { user }).await
}

/// What the events of a user still say of a person.
async fn traces(app: &App, user: Uuid) -> i64 {
    value!(
        &app.database.pool,
        "SELECT count(*) FROM events WHERE user_id = $1 AND kind <> 'user_deleted'
         AND (email IS NOT NULL OR ip IS NOT NULL OR user_agent IS NOT NULL OR detail IS NOT NULL)",
        user
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_user_is_gone_and_who_did_it_is_known() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    act(&app, Change::EndSessions { user: user(&ada) }).await;
    assert!(traces(&app, user(&ada)).await > 0);
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    let kept = traces(&app, user(&grace)).await;

    assert_eq!(delete(&app, user(&ada)).await, Outcome::Done);
    assert_eq!(app.database.rows().await, [1, 1, 1]);
    assert_eq!(traces(&app, user(&ada)).await, 0);
    assert_eq!(traces(&app, user(&grace)).await, kept, "nobody else is forgotten");
    let detail = json!({ "reason": "asked by phone", "identity_count": 1, "session_count": 0 });
    let expected = [(Some(STAFF.to_owned()), Some(detail))];
    assert_eq!(events(&app, "user_deleted", user(&ada)).await, expected);
    assert_eq!(alive(&app, &ada).await, (false, false));
    let again = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(again.outcome(), "created");
    assert_ne!(user(&again), user(&ada));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_merged_into_a_deleted_user_is_forgotten_with_them() {
    let app = App::start().await;
    let mut people = Vec::new();
    for name in ["first", "second", "third", "other"] {
        people.push(user(&app.sign_in(&claims(name, &format!("{name}@example.com"))).await));
    }
    assert_eq!(merge(&app, people[0], people[1]).await, Outcome::Done);
    assert_eq!(merge(&app, people[1], people[2]).await, Outcome::Done);
    // An attempt on the address of the first, which only an identity of the third still has.
    let attempt = json!({ "iss": "https://other.example", "aud": "x", "email": "first@example.com", "exp": now() + 60 });
    let attempt = encode(r#"{"alg":"RS256"}"#, &attempt.to_string());
    assert_eq!(app.post("idp", &json!({ "id_token": attempt })).await.error(), "issuer_mismatch");
    let claimed =
        "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND email = 'first@example.com'";
    eventually("the attempt is recorded", async || (app.database.count(claimed).await == 1).then_some(()))
        .await;

    // The user themselves, this time.
    let session = app.sign_in(&claims("first", "first@example.com")).await;
    assert_eq!(user(&session), people[2]);
    assert_eq!(app.delete(&session.access_token(), "/api/v1/me").await.status.as_u16(), 204);
    for (number, person) in people[..3].iter().enumerate() {
        assert_eq!(traces(&app, *person).await, 0, "{number}");
    }
    let merges: Vec<(Uuid, Option<String>)> =
        app.database.all("SELECT user_id, reason FROM events WHERE kind = 'users_merged' ORDER BY id").await;
    let into_another = Some("to_another".to_owned());
    let [first, second, third] = [people[0], people[1], people[2]];
    let expected = [(second, None), (first, into_another.clone()), (third, None), (second, into_another)];
    assert_eq!(merges, expected, "who was merged into whom still reads the right way round");
    let counts = json!({ "identity_count": 3, "session_count": 2 });
    assert_eq!(events(&app, "user_deleted", people[2]).await, [(None, Some(counts))]);
    let held = "SELECT count(*) FROM events WHERE email = 'first@example.com'";
    assert_eq!(app.database.count(held).await, 0);
    assert!(traces(&app, people[3]).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_deleted_who_is_staff_themselves_or_not_who_was_looked_at() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let me = user(&app.sign_in(&claims("me", STAFF)).await);
    let ada = user(&app.sign_in(&claims("ada", "ada@example.com")).await);
    let seen = preview(pool, Change::Delete { user: ada }).await.fingerprint();
    act(&app, Change::Disable { user: ada }).await;
    let before = app.database.everything(&[]).await;
    assert_eq!(delete(&app, me).await, Outcome::Refused(Refused::OwnAccount));
    assert_eq!(apply(pool, Change::Delete { user: ada }, &seen).await, Outcome::Changed);
    let unknown = Change::Delete { user: Uuid::now_v7() };
    assert_eq!(apply(pool, unknown, &seen).await, Outcome::NotFound);
    assert_eq!(app.database.everything(&[]).await, before);
}
