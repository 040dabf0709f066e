//! The change of `secret_key`, instance by instance.

use serde_json::Value;
use vestibule::app;
use vestibule::config::Config;
use vestibule::keys::seal::SealedBy;

use crate::support::app::{Answer, App, figment};
use crate::support::cluster::Database;
use crate::support::token::claims;

const OLD: &str = "the old key, of more than 32 characters";
const NEW: &str = "the new key, of more than 32 characters";
/// The successive settings of an instance, as docs/operation.md says.
const STEPS: [&[&str]; 4] = [&[OLD], &[OLD, NEW], &[NEW, OLD], &[NEW]];

/// After a minute, a repeat no longer gets the same successor.
const A_MINUTE_PASSES: &str = "UPDATE sessions SET rotated_at = rotated_at - interval '1 minute'";

async fn start(database: &Database, keys: &'static [&'static str]) -> App {
    let settings = |figment: figment::Figment| match keys {
        [key] => figment.merge(("secret_key", key)),
        keys => figment.merge(("secret_key", keys)),
    };
    App::start_beside(database, settings).await
}

#[track_caller]
fn token(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.refresh_token()
}

/// Loses a response of each instance, and repeats the request at the other one.
async fn lose_answers(database: &Database, one: &App, other: &App) {
    for (one, other) in [(one, other), (other, one)] {
        let first = one
            .sign_in(&claims("subject", "ada@example.com"))
            .await
            .refresh_token();
        let lost = one.refresh(&first).await;
        let repeated = other.refresh(&first).await;
        assert_eq!(
            token(&repeated),
            token(&lost),
            "a repeat gets the same successor"
        );
        for (app, answer) in [(one, &repeated), (other, &lost)] {
            let me = app.get(&answer.access_token(), "/api/v1/me").await;
            assert_eq!(me.status, 200, "{}", me.text);
        }
        let second = token(&lost);
        let lost = token(&one.refresh(&second).await);
        database.run(A_MINUTE_PASSES).await;
        let reissued = token(&other.refresh(&second).await);
        assert_ne!(reissued, lost, "a late repeat gets another one");
        assert_eq!(token(&one.refresh(&second).await), reissued);
        token(&one.refresh(&reissued).await);
    }
}

/// Announces a key on one instance, and loads it on the other.
async fn rotate(one: &App, other: &App) {
    one.keys.rotation().rotate().await.unwrap();
    other
        .keys
        .reload()
        .await
        .expect("it opens the key of the other one");
    one.keys.reload().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_rotate_their_secret_key_without_losing_sessions() {
    let database = Database::create().await;
    let [mut one, mut other] = [
        start(&database, STEPS[0]).await,
        start(&database, STEPS[0]).await,
    ];
    // A phone whose response was lost under the old key repeats its request at the end.
    let parent = one
        .sign_in(&claims("phone", "grace@example.com"))
        .await
        .refresh_token();
    let lost = token(&one.refresh(&parent).await);
    for keys in &STEPS[1..] {
        // While the old key is recognized, the phone may repeat its request late.
        if **keys == [NEW] {
            database.run(A_MINUTE_PASSES).await;
            let reissued = token(&one.refresh(&parent).await);
            assert_ne!(reissued, lost);
            token(&one.refresh(&reissued).await);
        }
        one.stop().await;
        one = start(&database, keys).await;
        rotate(&one, &other).await;
        lose_answers(&database, &one, &other).await;
        other.stop().await;
        other = start(&database, keys).await;
        rotate(&other, &one).await;
        lose_answers(&database, &one, &other).await;
    }
    let rotation = other.keys.rotation();
    let stored = rotation.stored().await.unwrap().unwrap().keys;
    assert!(
        !stored.is_empty()
            && stored
                .iter()
                .all(|key| rotation.sealed_by(key) == SealedBy::Current)
    );
    let replays = "SELECT count(*) FROM events WHERE kind = 'refresh_token_replayed'";
    assert_eq!(database.count(replays).await, 0);

    let settings = figment(&database.url, "http://127.0.0.1:1/").merge(("secret_key", OLD));
    let (_, start) = app::build(Config::read(settings).unwrap()).await.unwrap();
    let error = start.open().await.unwrap_err().to_string();
    assert!(
        error.contains("encrypted with another `secret_key`") && !error.contains(OLD),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_instance_rotates_its_secret_key_without_losing_sessions() {
    let database = Database::create().await;
    let mut app = start(&database, &[OLD]).await;
    let signed_in = app.sign_in(&claims("subject", "ada@example.com")).await;
    let lost = token(&app.refresh(&signed_in.refresh_token()).await);
    let jwks: Value = app.get("", "/.well-known/jwks.json").await.json();
    app.stop().await;

    let mut app = start(&database, &[NEW, OLD]).await;
    assert_eq!(token(&app.refresh(&signed_in.refresh_token()).await), lost);
    app.stop().await;

    let app = start(&database, &[NEW]).await;
    assert_eq!(
        app.get("", "/.well-known/jwks.json").await.json(),
        jwks,
        "the keys stay"
    );
    let me = app.get(&signed_in.access_token(), "/api/v1/me").await;
    assert_eq!(me.status, 200, "{}", me.text);
    token(&app.refresh(&lost).await);
}
