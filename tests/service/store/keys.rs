//! Signing keys that change while several instances issue and verify tokens.

use std::time::Instant;

use figment::Figment;
use tokio::task::JoinSet;
use uuid::Uuid;
use vestibule::config::Config;
use vestibule::domain::custom_claims::CustomClaims;
use vestibule::keys::KeyRing;
use vestibule::keys::rotation::Rotation;
use vestibule::keys::signing_key::Error;
use vestibule::secret::{Secret, SecretKeys};

use crate::support::app::{App, figment};
use crate::support::cluster::Database;
use crate::support::keys::{issuer, kid, pass, second_instance};
use crate::support::token::{claims, now};

const DAY: u32 = 24 * 60 * 60;
/// `keys.announce` and `keys.rotate_every`, by default.
const ANNOUNCE: u32 = 600;
const ROTATE_EVERY: u32 = 30 * DAY;
/// The time for which a key stays published after its last signature: the longest lifetime of a
/// token, and a minute.
const KEEP: u32 = DAY + 60;

fn config(database: &Database) -> Config {
    Config::read(figment(&database.url, "http://127.0.0.1:1/")).unwrap()
}

/// Returns a rotation with its own connections, as another instance has.
async fn rotation(database: &Database) -> Rotation {
    let config = config(database);
    let pool = sqlx::PgPool::connect(&database.url).await.unwrap();
    Rotation::new(pool.into(), &config.secret_key, config.keys).unwrap()
}

async fn ring(database: &Database) -> KeyRing {
    ring_of(database, &config(database).secret_key).await
}

async fn ring_of(database: &Database, secret_key: &SecretKeys) -> KeyRing {
    let ring = KeyRing::new(
        database.pool.clone().into(),
        secret_key,
        config(database).keys,
    )
    .unwrap();
    ring.open().await.unwrap();
    ring
}

async fn access_token(app: &App) -> String {
    app.sign_in(&claims("subject", "ada@example.com"))
        .await
        .access_token()
}

async fn reload(instances: &[&App]) {
    for app in instances {
        app.keys.reload().await.unwrap();
    }
}

async fn accepts(app: &App, token: &str) -> bool {
    issuer(&app.keys).verify(token, now()).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_accept_each_others_tokens_throughout_a_rotation() {
    let one = App::start().await;
    let other = second_instance(&one).await;
    let old = [access_token(&one).await, access_token(&other).await];
    assert_eq!(kid(&old[0]), kid(&old[1]), "they share the key");
    let all_accept = async |tokens: &[String]| {
        for token in tokens {
            assert!(accepts(&one, token).await && accepts(&other, token).await);
        }
    };
    all_accept(&old).await;

    assert!(one.keys.rotation().rotate().await.unwrap());
    assert!(
        !other.keys.rotation().rotate().await.unwrap(),
        "the next one is announced already"
    );
    reload(&[&one, &other]).await;
    let during = [access_token(&one).await, access_token(&other).await];
    assert!(
        during.iter().all(|token| kid(token) == kid(&old[0])),
        "the new key does not sign yet"
    );
    all_accept(&old).await;
    all_accept(&during).await;

    pass(&one.database, ANNOUNCE).await;
    one.keys.reload().await.unwrap();
    let new = [access_token(&one).await];
    assert_ne!(kid(&new[0]), kid(&old[0]));
    // The other instance has not reloaded: it still signs with the old key, but knows the new one.
    all_accept(&new).await;
    all_accept(&old).await;
    all_accept(&[access_token(&other).await]).await;
    other.keys.reload().await.unwrap();
    assert_eq!(kid(&access_token(&other).await), kid(&new[0]));

    pass(&one.database, KEEP - 60).await;
    reload(&[&one, &other]).await;
    all_accept(&old).await;
    pass(&one.database, 60).await;
    reload(&[&one, &other]).await;
    assert!(
        !accepts(&one, &old[0]).await && !accepts(&other, &old[1]).await,
        "its time is over"
    );
    all_accept(&new).await;
    assert_eq!(
        one.database
            .count("SELECT count(*) FROM signing_keys")
            .await,
        1,
        "its row is deleted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announced_key_begins_to_sign_in_time_without_the_database() {
    let database = Database::create().await;
    let ring = ring(&database).await;
    let first = ring.signing(now()).unwrap().kid.clone();
    ring.rotation().rotate().await.unwrap();
    ring.reload().await.unwrap();
    let signs = |seconds: u32| {
        ring.signing(now() + i64::from(seconds))
            .unwrap()
            .kid
            .clone()
    };
    assert_eq!(signs(ANNOUNCE - 60), first);
    assert_ne!(signs(ANNOUNCE + 1), first);
    let published = |seconds: u32| ring.find(&first, now() + i64::from(seconds)).is_some();
    assert!(published(ANNOUNCE + KEEP - 60));
    assert!(!published(ANNOUNCE + KEEP + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn shortening_the_token_lifetime_does_not_invalidate_issued_tokens() {
    let hour = |figment: Figment| figment.merge(("session.access_token_ttl", 3600));
    let mut app = App::start_with(hour).await;
    let token = access_token(&app).await;
    app.keys.rotation().rotate().await.unwrap();
    // The successor has signed for 25 minutes.
    pass(&app.database, ANNOUNCE + 25 * 60).await;
    app.stop().await;
    let app = App::start_on(app.release(), |figment| figment).await;
    assert_eq!(app.keys.published().len(), 2);
    assert_eq!(app.get(&token, "/api/v1/me").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_follow_each_other_on_the_schedule() {
    let database = Database::create().await;
    let ring = ring(&database).await;
    let count = async || database.count("SELECT count(*) FROM signing_keys").await;
    pass(&database, ROTATE_EVERY - ANNOUNCE - 60).await;
    ring.reload().await.unwrap();
    assert_eq!(count().await, 1, "not before its time");
    pass(&database, 60).await;
    ring.reload().await.unwrap();
    assert_eq!((count().await, ring.published().len()), (2, 2), "announced");
    ring.reload().await.unwrap();
    assert_eq!(count().await, 2, "announced once");
    pass(&database, ANNOUNCE + KEEP).await;
    ring.reload().await.unwrap();
    assert_eq!(
        (count().await, ring.published().len()),
        (1, 1),
        "the old one is gone"
    );
    // After months of sleep an instance makes one key, not one a month. An instance with another
    // secret makes none.
    pass(&database, 400 * DAY).await;
    let secret = Secret::new("another key, of more than 32 characters".to_owned()).into();
    let other = Rotation::new(
        database.pool.clone().into(),
        &secret,
        config(&database).keys,
    )
    .unwrap();
    assert!(matches!(other.tend().await, Err(Error::Sealed(_))));
    assert_eq!(count().await, 1);
    ring.reload().await.unwrap();
    assert_eq!(count().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_instances_that_rotate_at_once_make_one_key() {
    let database = Database::create().await;
    let first = ring(&database).await;
    for round in 0..20 {
        let mut rotations = JoinSet::new();
        for _ in 0..8 {
            let rotation = rotation(&database).await;
            // These stand for the schedule and the command at once.
            rotations.spawn(async move { rotation.rotate().await.unwrap() });
        }
        let made = rotations
            .join_all()
            .await
            .into_iter()
            .filter(|made| *made)
            .count();
        assert_eq!(made, 1, "round {round}");
        let next = database
            .count("SELECT count(*) FROM signing_keys WHERE signs_from > now()")
            .await;
        assert_eq!(next, 1, "round {round}");
        pass(&database, ANNOUNCE).await;
    }
    first.reload().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn emergencies_at_once_leave_one_key_that_is_not_retired() {
    let database = Database::create().await;
    ring(&database).await;
    let mut rotations = JoinSet::new();
    for _ in 0..8 {
        let rotation = rotation(&database).await;
        rotations.spawn(async move { rotation.replace_all(false).await });
    }
    assert!(
        rotations
            .join_all()
            .await
            .into_iter()
            .all(|done| done.is_ok())
    );
    let left = "SELECT count(*) FROM signing_keys WHERE retired_at IS NULL AND signs_from <= now()";
    assert_eq!(database.count(left).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_key_is_refused_and_its_successor_accepted_immediately() {
    let one = App::start().await;
    let other = second_instance(&one).await;
    let old = access_token(&one).await;
    assert!(accepts(&one, &old).await && accepts(&other, &old).await);
    other.keys.rotation().rotate().await.unwrap();
    one.keys.rotation().replace_all(false).await.unwrap();
    one.keys.reload().await.unwrap();
    assert!(!accepts(&one, &old).await);
    assert_eq!(
        one.keys.published().len(),
        1,
        "the announced key is retired as well"
    );

    let new = access_token(&one).await;
    assert_ne!(kid(&new), kid(&old));
    assert_ne!(
        kid(&new),
        kid(&access_token(&other).await),
        "the other has not heard of it"
    );
    assert!(accepts(&other, &new).await, "an unknown key is looked for");
    assert!(!accepts(&other, &old).await);
    assert_eq!(kid(&new), kid(&access_token(&other).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_looked_for_rarely_however_many_are_named() {
    let app = App::start().await;
    let started = Instant::now();
    let before = app.keys.reloads();
    let unknown = (0..500).map(|number| format!("{number:043}"));
    for kid in unknown {
        assert!(app.keys.find_or_reload(&kid, now()).await.is_none());
    }
    // One reload at once, one each five seconds, and the reloads of the background task.
    let allowed = 2 + started.elapsed().as_secs() / 5 + started.elapsed().as_secs() / 30;
    let reloads = app.keys.reloads() - before;
    assert!((1..=allowed).contains(&reloads), "{reloads} reloads");
}

#[tokio::test(flavor = "multi_thread")]
async fn write_access_to_the_key_table_cannot_add_a_key() {
    let app = App::start().await;
    let foreign = Database::create().await;
    let secret = Secret::new("another key, of more than 32 characters".to_owned()).into();
    let attacker = ring_of(&foreign, &secret).await;
    let theirs: (String, Vec<u8>, Vec<u8>) = foreign
        .row("SELECT kid, public_key, sealed_private_key FROM signing_keys")
        .await;
    let nobody = Uuid::nil();
    let none = CustomClaims::default();
    let forged = issuer(&attacker)
        .issue(nobody, nobody, "client", None, &none, now()..now() + 900)
        .unwrap();
    let forged = forged.expose();

    // Their public key in our row has no effect: only the sealed private key counts.
    run!(
        &app.database.pool,
        "UPDATE signing_keys SET public_key = $1",
        &theirs.1
    );
    app.keys.reload().await.unwrap();
    let own = access_token(&app).await;
    assert!(accepts(&app, &own).await && !accepts(&app, forged).await);

    // Their row beside ours is an error for the operator, and the keys in memory stay.
    run!(
        &app.database.pool,
        "INSERT INTO signing_keys (kid, number, public_key, sealed_private_key, signs_from)
         VALUES ($1, 2, $2, $3, now() + interval '1 hour')",
        &theirs.0,
        &theirs.1,
        &theirs.2
    );
    assert!(matches!(app.keys.reload().await, Err(Error::Sealed(_))));
    assert_eq!(app.keys.failures(), 1);
    assert!(accepts(&app, &own).await && !accepts(&app, forged).await);
    assert!(accepts(&app, &access_token(&app).await).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_of_a_key_is_its_id() {
    let database = Database::create().await;
    let ring = ring(&database).await;
    let key = ring.signing(now()).unwrap();
    assert_eq!(format!("{key:?}"), format!("SigningKey({:?})", key.kid));
}
