//! Migrations of later versions, applied while requests use the tables.

use std::borrow::Cow;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, SqlSafeStr};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use vestibule::database::migrations;

use crate::support::cluster::Database;
use crate::support::process::eventually;

/// Begins to apply a migration, and waits until it needs a lock that another transaction holds.
async fn begin(
    database: &Database,
    sql: &'static str,
    no_tx: bool,
) -> JoinHandle<Result<(), MigrateError>> {
    let description = Cow::Borrowed("of a later version");
    let later = Migration::new(
        99_991_231_235_959,
        description,
        MigrationType::Simple,
        sql.into_sql_str(),
        no_tx,
    );
    let url = database.url.clone();
    let applied = tokio::task::spawn_blocking(move || {
        Handle::current().block_on(async {
            let mut connection = PgConnection::connect(&url).await?;
            migrations::run(&mut connection, &mut Migrator::with_migrations(vec![later])).await
        })
    });
    eventually("it waits", async || {
        assert!(!applied.is_finished(), "it waits for nobody");
        (database.waiting("").await == 1).then_some(())
    })
    .await;
    applied
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_yields_to_lock_holders_and_queued_requests() {
    let database = Database::create().await;
    let mut request = database.pool.begin().await.unwrap();
    request.execute("SELECT FROM identities").await.unwrap();
    let later =
        "ALTER TABLE users ADD COLUMN later text; ALTER TABLE identities ADD COLUMN later text";
    let applied = begin(&database, later, false).await;
    for _ in 0..3 {
        let limited = "SET LOCAL lock_timeout = '900ms'; SELECT FROM users";
        database
            .pool
            .execute(limited)
            .await
            .expect("another request reads what the migration has locked");
    }
    request
        .execute("SELECT FROM users")
        .await
        .expect("no deadlock");
    assert!(!applied.is_finished());
    request.commit().await.unwrap();
    applied.await.unwrap().unwrap();
    database
        .pool
        .execute("SELECT u.later, i.later FROM users u, identities i")
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_created_concurrently_although_transactions_are_open() {
    let database = Database::create().await;
    let mut request = database.pool.begin().await.unwrap();
    request
        .execute("INSERT INTO users (id) VALUES (gen_random_uuid())")
        .await
        .unwrap();
    let applied = begin(
        &database,
        "CREATE INDEX CONCURRENTLY users_later ON users (created_at)",
        true,
    )
    .await;
    database
        .pool
        .execute("INSERT INTO users (id) VALUES (gen_random_uuid())")
        .await
        .expect("writes go on");
    request.commit().await.unwrap();
    applied.await.unwrap().unwrap();
    let valid =
        "SELECT count(*) FROM pg_index WHERE indexrelid = 'users_later'::regclass AND indisvalid";
    assert_eq!(database.count(valid).await, 1);
}
