//! The list of users as a file.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::admin::staff::store::{Changed, remove};
use vestibule::domain::actor::Origin;
use vestibule::domain::actor::{Actor, By};
use vestibule::domain::staff::Role;

use super::desk_with;
use crate::support::desk::{Browser, Desk};

/// So many users with names of that text.
async fn fill(desk: &Desk, count: i32, name: &str) {
    sqlx::query(
        "INSERT INTO users (id, email, name)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@example.com', $2
         FROM generate_series(1, $1) AS n",
    )
    .bind(count)
    .bind(name)
    .execute(&desk.app.database.pool)
    .await
    .unwrap();
}

/// What a program reads from a file; an error where it is no sound one.
fn read(file: &[u8]) -> Result<Vec<Vec<String>>, csv::Error> {
    csv::ReaderBuilder::new().has_headers(false).from_reader(file).deserialize().collect()
}

/// The file as far as a program can read it, and whether that is all of it.
fn read_what_there_is(file: &[u8]) -> (usize, bool) {
    let mut reader = csv::Reader::from_reader(file);
    let read: Vec<_> = reader.records().collect();
    (read.iter().filter(|row| row.is_ok()).count(), read.iter().all(Result::is_ok))
}

async fn open(browser: &Browser, path: &str) -> reqwest::Response {
    let response = browser.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200, "{path}");
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_holds_everyone_whom_the_list_holds_and_nothing_that_a_spreadsheet_runs() {
    let (desk, mut browser) = desk_with(Role::Support).await;
    let pool = &desk.app.database.pool;
    fill(&desk, 4_500, "Somebody").await;
    let names =
        ["=HYPERLINK(\"https://evil.example\")", "+1", "-1", "@SUM(A1)", " =1", "a,\"b\"\r\nc", "é🦀"];
    for (number, name) in names.iter().enumerate() {
        sqlx::query("UPDATE users SET name = $1, disabled_at = now() WHERE email = $2")
            .bind(name)
            .bind(format!("{}@example.com", number + 1))
            .execute(pool)
            .await
            .unwrap();
    }
    let response = open(&browser, "/admin/users.csv?sort=oldest").await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let today: String = sqlx::query_scalar("SELECT current_date::text").fetch_one(pool).await.unwrap();
    assert_eq!(header("content-disposition"), format!("attachment; filename=\"users-{today}.csv\""));
    let rows = read(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(rows[0][..4], ["id", "email", "email_verified", "name"]);
    let addresses: Vec<_> = rows[1..].iter().map(|row| row[1].clone()).collect();
    assert_eq!(addresses, (1..=4_500).map(|number| format!("{number}@example.com")).collect::<Vec<_>>());
    for (row, name) in rows[1..].iter().zip(names) {
        let defused = ["a,", "é"].iter().any(|sound| name.starts_with(sound));
        assert_eq!(row[3], if defused { name.to_owned() } else { format!("'{name}") });
    }

    let disabled =
        read(&open(&browser, "/admin/users.csv?status=disabled").await.bytes().await.unwrap()).unwrap();
    assert_eq!(disabled.len(), 1 + names.len());
    let found = read(&open(&browser, "/admin/users.csv?q=4321%40").await.bytes().await.unwrap()).unwrap();
    assert_eq!((found.len(), found[1][1].as_str()), (2, "4321@example.com"));
    let nobody = open(&browser, "/admin/users.csv?created_from=nonsense").await.bytes().await.unwrap();
    assert_eq!(read(&nobody).unwrap().len(), 1);

    let exports: Vec<(String, Value)> = sqlx::query_as(
        "SELECT actor, detail FROM events WHERE kind = 'users_exported' AND ip IS NOT NULL ORDER BY id",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    assert_eq!(exports.len(), 4, "each export is on record");
    assert!(exports.iter().all(|(actor, _)| actor == "staff@example.com"));
    assert_eq!(exports[1].1["search"], json!({ "status": "disabled" }));
    assert!(
        browser.get("/admin/users?status=disabled").await.text.contains("/admin/users.csv?status=disabled")
    );
}

/// Waits until the service has asked the database nothing for a second.
async fn at_rest(desk: &Desk) {
    let asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vestibule' AND datname = current_database()
                 AND (state <> 'idle' OR state_change > clock_timestamp() - interval '1 second')";
    for _ in 0..600 {
        if desk.app.database.count(asked).await == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the service does not come to rest");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_from_the_database_before_the_reader_takes_it() {
    // Much more than what the connection itself holds.
    const USERS: usize = 100_000;
    let (desk, browser) = desk_with(Role::Support).await;
    fill(&desk, i32::try_from(USERS).unwrap(), &"early ".repeat(40)).await;
    let mut response = open(&browser, "/admin/users.csv").await;
    let mut file = response.chunk().await.unwrap().unwrap().to_vec();
    at_rest(&desk).await;
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vestibule'
                       AND datname = current_database() AND xact_start IS NOT NULL";
    assert_eq!(desk.app.database.count(connections).await, 0, "no transaction waits for the reader");
    // What the service reads from here on is told from what it has in memory or sent.
    sqlx::query("UPDATE users SET name = 'late'").execute(&desk.app.database.pool).await.unwrap();
    while let Some(chunk) = response.chunk().await.unwrap() {
        file.extend(chunk);
    }
    let rows = read(&file).unwrap();
    let ids: BTreeSet<_> = rows[1..].iter().map(|row| row[0].clone()).collect();
    assert_eq!((rows.len(), ids.len()), (1 + USERS, USERS), "everybody, once");
    let late = rows.iter().filter(|row| row[3] == "late").count();
    assert!(late > USERS / 3, "only {late} were read when they were wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_breaks_off_does_not_look_whole() {
    const USERS: usize = 50_000;
    let (desk, mut browser) = desk_with(Role::Support).await;
    fill(&desk, i32::try_from(USERS).unwrap(), &"name ".repeat(60)).await;
    let mut response = open(&browser, "/admin/users.csv").await;
    let mut file = response.chunk().await.unwrap().unwrap().to_vec();
    at_rest(&desk).await;
    sqlx::query("ALTER TABLE users RENAME TO gone").execute(&desk.app.database.pool).await.unwrap();
    while let Ok(Some(chunk)) = response.chunk().await {
        file.extend(chunk);
    }
    let (rows, whole) = read_what_there_is(&file);
    assert!(rows < USERS, "{rows}");
    assert!(!whole, "a program finds it broken");
    let text = String::from_utf8(file).unwrap();
    assert!(text.ends_with("It is not complete; please try again."), "and so does a person");

    let answer = browser.get("/admin/users.csv").await;
    assert_eq!(answer.status.as_u16(), 500, "what fails at once is a page");
    assert!(answer.header("content-type").unwrap().starts_with("text/html"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_breaks_off_when_its_reader_is_no_longer_staff() {
    const USERS: usize = 50_000;
    let (desk, browser) = desk_with(Role::Support).await;
    fill(&desk, i32::try_from(USERS).unwrap(), &"name ".repeat(60)).await;
    let mut response = open(&browser, "/admin/users.csv").await;
    let mut file = response.chunk().await.unwrap().unwrap().to_vec();
    at_rest(&desk).await;
    let by = By { actor: Actor::Operator("the tests"), reason: None, origin: &Origin::default() };
    assert_eq!(remove(&desk.app.database.pool, "staff@example.com", by).await.unwrap(), Changed::Done);
    while let Ok(Some(chunk)) = response.chunk().await {
        file.extend(chunk);
    }
    let (rows, whole) = read_what_there_is(&file);
    assert!(rows < USERS && !whole, "{rows}");
}
