//! Several instances on one database.

use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use vestibule::config::Config;
use vestibule::service;

use crate::support::app::{App, figment};
use crate::support::cluster::Database;
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_start_together_migrate_once_and_share_one_signing_key() {
    let database = Database::bare().await;
    let mut starts = JoinSet::new();
    for _ in 0..8 {
        let config = Config::read(figment(&database.url, "http://127.0.0.1:1/")).unwrap();
        starts.spawn_blocking(move || {
            Handle::current().block_on(async {
                service::migrate(&config).await.unwrap();
                drop(service::build(config).await.unwrap());
            });
        });
    }
    starts.join_all().await;
    let applied = database.count("SELECT count(*) FROM _sqlx_migrations WHERE success").await;
    assert_eq!(applied, database.count("SELECT count(DISTINCT version) FROM _sqlx_migrations").await);
    assert!(applied > 0);
    assert_eq!(database.count("SELECT count(*) FROM signing_keys").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_users_and_signs_with_the_same_key() {
    let kid = |token: &serde_json::Value| token.as_str().unwrap().split('.').next().unwrap().to_owned();
    let mut app = App::start().await;
    let first = app.sign_in(&claims("subject", "ada@example.com")).await;
    app.stop().await;
    let app = App::start_on(app.release(), |figment| figment).await;
    let second = app.sign_in(&claims("subject", "ada@example.com")).await;
    assert_eq!((second.outcome().as_str(), second.user_id()), ("signed_in", first.user_id()));
    assert_eq!(kid(&first.json()["access_token"]), kid(&second.json()["access_token"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_secret_key_is_refused_at_the_start() {
    let app = App::start().await;
    let settings = figment(&app.database.url, "http://127.0.0.1:1/");
    let config =
        Config::read(settings.merge(("secret_key", "another key, of more than 32 characters"))).unwrap();
    let error = service::build(config).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("secret_key") && !error.contains("another key"), "{error}");
    assert_eq!(app.sign_in(&json!({})).await.status.as_u16(), 401, "the first one goes on");
}
