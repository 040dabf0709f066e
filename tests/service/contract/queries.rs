//! The committed descriptions (`.sqlx`), by which the compiler checks queries, match the schema
//! that the migrations create.

use std::fs;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr};

use crate::support::cluster::Database;

#[tokio::test]
async fn every_committed_query_description_is_what_the_database_says() {
    let database = Database::create().await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.sqlx")).unwrap() {
        let committed: Value =
            serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let query = committed["query"].as_str().unwrap().to_owned();
        let described = connection
            .describe(AssertSqlSafe(query.clone()).into_sql_str())
            .await
            .unwrap();
        let described = serde_json::to_value(described).unwrap();
        assert_eq!(
            committed["describe"], described,
            "{query}\nwrite .sqlx anew, see CONTRIBUTING.md"
        );
        seen += 1;
    }
    assert!(seen > 0);
}
