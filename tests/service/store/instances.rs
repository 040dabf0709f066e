//! Several instances on one database.

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use vestibule::app;
use vestibule::config::Config;

use crate::support::app::figment;
use crate::support::cluster::Database;

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_start_together_migrate_once_and_share_one_signing_key() {
    let database = Database::bare().await;
    let mut starts = JoinSet::new();
    for _ in 0..8 {
        let config = Config::read(figment(&database.url, "http://127.0.0.1:1/")).unwrap();
        starts.spawn_blocking(move || {
            Handle::current().block_on(async {
                app::migrate(&config.figment).await.unwrap();
                app::build(config).await.unwrap().1.open().await.unwrap();
            });
        });
    }
    starts.join_all().await;
    let applied = database
        .count("SELECT count(*) FROM _sqlx_migrations WHERE success")
        .await;
    assert_eq!(
        applied,
        database
            .count("SELECT count(DISTINCT version) FROM _sqlx_migrations")
            .await
    );
    assert!(applied > 0);
    assert_eq!(database.count("SELECT count(*) FROM signing_keys").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_no_longer_serves_the_program_is_refused() {
    let database = Database::create().await;
    database
        .run(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99991231235959, 'of the future', true, 'x', 1)",
        )
        .await;
    let config = Config::read(figment(&database.url, "http://127.0.0.1:1/")).unwrap();
    app::migrate(&config.figment).await.expect("it only adds");
    for (change, oldest) in [
        (
            "UPDATE oldest_version SET version = '0.1.1'",
            "version 0.1.1 and newer",
        ),
        ("DROP TABLE oldest_version", "version unknown and newer"),
    ] {
        sqlx::raw_sql(change).execute(&database.pool).await.unwrap();
        let error = app::migrate(&config.figment).await.unwrap_err().to_string();
        assert!(
            error.contains("99991231235959") && error.contains(oldest),
            "{error}"
        );
    }
}
