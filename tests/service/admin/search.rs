//! A search finds by whatever staff are told, the best match first, and takes every character for itself.

use std::fs;

use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use uuid::Uuid;
use vestibule::admin::users::store::search::search;
use vestibule::admin::users::store::{Filters, Status, providers};
use vestibule::store::migrations;

use crate::support::cluster::Database;
use crate::support::missing::skip;

const PAGE: usize = 10;
const NOBODY: [Uuid; 0] = [];

async fn add(pool: &PgPool, email: Option<&str>, name: Option<&str>, subject: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("INSERT INTO users (id, email, name) VALUES ($1, $2, $3)")
        .bind(id)
        .bind(email)
        .bind(name)
        .execute(pool)
        .await
        .unwrap();
    sqlx::query("INSERT INTO identities (id, user_id, provider, subject) VALUES ($1, $2, 'google', $3)")
        .bind(Uuid::now_v7())
        .bind(id)
        .bind(subject)
        .execute(pool)
        .await
        .unwrap();
    id
}

async fn find(pool: &PgPool, text: &str) -> Vec<Uuid> {
    find_among(pool, text, &Filters::default()).await
}

async fn find_among(pool: &PgPool, text: &str, filters: &Filters) -> Vec<Uuid> {
    let found = search(pool, text, &providers(pool).await.unwrap(), filters, PAGE).await.unwrap();
    assert!(!found.more, "{text}");
    found.users.into_iter().map(|user| user.id).collect()
}

/// A database with the indexes of trigrams, made by the migrations or, later, by the operator. Nothing
/// where PostgreSQL comes without the extension, which is an error where `CI` is set.
async fn with_trigrams(by_operator: bool) -> Option<Database> {
    let database = Database::bare().await;
    if database.count("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'").await == 0 {
        skip("pg_trgm is not installed: no search for parts has been tried");
        return None;
    }
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operation.md")).unwrap();
    let statements: Vec<_> = page
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("CREATE EXTENSION") || line.starts_with("CREATE INDEX CONCURRENTLY"))
        .collect();
    assert_eq!(statements.len(), 3);
    if by_operator {
        migrations::apply(&mut connection).await.unwrap();
    }
    for sql in statements.into_iter().take(if by_operator { 3 } else { 1 }) {
        sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    }
    migrations::apply(&mut connection).await.unwrap();
    Some(database)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_match_comes_first_and_each_user_once() {
    let database = Database::create().await;
    let pool = &database.pool;
    let by_name = add(pool, Some("zoe@example.com"), Some("Ann@Example.com the second"), "1").await;
    let longer = add(pool, Some("ann@example.com.au"), None, "2").await;
    let by_subject = add(pool, None, None, "Ann@example.com").await;
    let exact = add(pool, Some("ann@example.com"), Some("Ann@example.com"), "4").await;
    assert_eq!(find(pool, "Ann@example.com").await, [exact, by_subject, longer, by_name]);
    assert_eq!(find(pool, "ann@example.com").await, [exact, longer, by_name], "subjects are as they are");
    assert_eq!(find(pool, &exact.to_string().to_uppercase()).await, [exact]);
    assert_eq!(find(pool, &by_subject.simple().to_string()).await, [by_subject]);
    // By the address, then by the name, in their orders.
    assert_eq!(find(pool, "ANN").await, [exact, longer, by_name]);
    assert_eq!(find(pool, "nn@").await, NOBODY, "without the indexes, nothing is found by its middle");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_character_means_itself() {
    let mut databases = vec![Database::create().await];
    databases.extend(with_trigrams(false).await);
    for database in databases {
        let pool = &database.pool;
        let texts =
            ["100%", "a_b", "back\\slash", "quo'te", "quo\"te", "[a-z]+", "per%cent", "$1", "é\u{10ffff}"];
        for (number, text) in texts.into_iter().enumerate() {
            add(pool, Some(&format!("user{number}@example.com")), Some(text), text).await;
        }
        for (number, text) in texts.into_iter().enumerate() {
            let found = find(pool, text).await;
            assert_eq!(found.len(), 1, "{text}");
            let email: String = sqlx::query_scalar("SELECT email FROM users WHERE id = $1")
                .bind(found[0])
                .fetch_one(pool)
                .await
                .unwrap();
            assert_eq!(email, format!("user{number}@example.com"), "{text}");
        }
        let long = "x".repeat(10_000);
        for text in ["%", "_", "%%%", "___", "\\", "'", "a%b", "user%", "us_r1", "(a+)+$", ".*", &long] {
            assert_eq!(find(pool, text).await, NOBODY, "{text:.20}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_keeps_to_the_filters_and_says_when_there_is_more() {
    let database = Database::create().await;
    let pool = &database.pool;
    let mut ids = Vec::new();
    for number in 0..=PAGE {
        let email = format!("ann{number:02}@example.com");
        ids.push(add(pool, Some(&email), Some("Ann"), &format!("subject-{number}")).await);
    }
    let found = search(pool, "ann", &[], &Filters::default(), PAGE).await.unwrap();
    assert!(found.more);
    assert_eq!(found.users.iter().map(|user| user.id).collect::<Vec<_>>(), ids[..PAGE]);

    sqlx::query("UPDATE users SET disabled_at = now() WHERE id = $1")
        .bind(ids[3])
        .execute(pool)
        .await
        .unwrap();
    let disabled = Filters { status: Some(Status::Disabled), ..Filters::default() };
    let active = Filters { status: Some(Status::Active), ..Filters::default() };
    let elsewhere = Filters { provider: Some("apple".into()), ..Filters::default() };
    let id = ids[3].to_string();
    for text in ["ann", "ann03@example.com", "subject-3", &id] {
        assert_eq!(find_among(pool, text, &disabled).await, [ids[3]], "{text}");
        assert_eq!(find_among(pool, text, &elsewhere).await, NOBODY, "{text}");
        assert!(!find_among(pool, text, &active).await.contains(&ids[3]), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_extension_parts_are_found_after_beginnings() {
    for by_operator in [false, true] {
        let Some(database) = with_trigrams(by_operator).await else { return };
        let pool = &database.pool;
        let middle = add(pool, Some("joann@example.com"), None, "1").await;
        let name = add(pool, Some("zoe@example.com"), Some("Zoe Annis"), "2").await;
        let beginning = add(pool, Some("ann@example.com"), Some("Joanna"), "3").await;
        assert_eq!(find(pool, "ANN").await, [beginning, middle, name]);
        assert_eq!(find(pool, "oanna").await, [beginning]);
        let active = Filters { status: Some(Status::Active), ..Filters::default() };
        let disabled = Filters { status: Some(Status::Disabled), ..Filters::default() };
        assert_eq!(find_among(pool, "annis", &active).await, [name]);
        assert_eq!(find_among(pool, "annis", &disabled).await, NOBODY);
        assert_eq!(find(pool, "nn").await, NOBODY, "two letters are no trigram");
        assert_eq!(find(pool, "n@e").await, NOBODY, "nor are three characters that are not all letters");
        sqlx::query("DROP INDEX users_name_trigrams_idx").execute(pool).await.unwrap();
        assert_eq!(find(pool, "annis").await, NOBODY, "half of the indexes are none");
    }
}
