//! Files of what the pages show.

use std::collections::BTreeSet;

use reqwest::Method;
use vestibule::domain::staff::Role;

use super::{desk_with, person};

/// The rows of a file, without its heading.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_holds_everybody_whom_the_filters_leave_and_no_formula() {
    let (desk, mut browser) = desk_with(Role::Support).await;
    sqlx::query(
        "INSERT INTO users (id, email, name, disabled_at)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'user-' || n || '@example.com',
                CASE WHEN n % 2 = 0 THEN 'Name, \"quoted\" ' || n END, CASE WHEN n % 100 = 0 THEN now() END
         FROM generate_series(1, 5000) AS n",
    )
    .execute(&desk.app.database.pool)
    .await
    .unwrap();
    let nasty = "=HYPERLINK(\"https://evil.example\";\"x\")";
    person(&desk, &[("email", "formula@example.com"), ("name", nasty)]).await;

    let answer = browser.get("/admin/users.csv").await;
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"users.csv\""));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let all = rows(&answer.text);
    assert_eq!(all.iter().map(|row| &row[0]).collect::<BTreeSet<_>>().len(), 5001);
    assert_eq!(all.len(), 5001);
    assert!(all.iter().any(|row| row[1] == "user-4998@example.com" && row[3] == "Name, \"quoted\" 4998"));
    assert!(all.iter().any(|row| row[3] == format!("'{nasty}")), "the formula is text");

    for (query, count) in [
        ("status=disabled", 50),
        ("provider=idp", 1),
        ("provider=nobody", 0),
        ("q=user-499", 11),
        ("created_from=2020-01-01&sort=name", 1),
    ] {
        let answer = browser.get(&format!("/admin/users.csv?{query}")).await;
        assert_eq!(rows(&answer.text).len(), count, "{query}");
    }
    let audit = browser.get("/admin/audit.csv?what=looks").await.text;
    let exported = rows(&audit).into_iter().filter(|row| row[2] == "users_exported").collect::<Vec<_>>();
    assert_eq!(exported.len(), 6);
    assert!(exported.iter().all(|row| row[8] == "staff@example.com" && row[11] == "127.0.0.1"), "{audit}");
    assert!(exported.iter().any(|row| row[10] == "status=disabled"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_an_export_slowly_holds_no_connection_meanwhile() {
    let (desk, browser) = desk_with(Role::Support).await;
    sqlx::query(
        "INSERT INTO users (id, email, name) SELECT gen_random_uuid(), 'user-' || n || '@example.com', repeat('x', 200)
         FROM generate_series(1, 40000) AS n",
    )
    .execute(&desk.app.database.pool)
    .await
    .unwrap();
    let mut export = browser.request(Method::GET, "/admin/users.csv").send().await.unwrap();
    let first = export.chunk().await.unwrap().unwrap();
    // What the sockets between us hold is far less than the file: the service waits for us.
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vestibule'
                AND datname = current_database() AND state <> 'idle'";
    let mut quiet = 0;
    while quiet < 50 {
        quiet = if desk.app.database.count(busy).await == 0 { quiet + 1 } else { 0 };
    }
    let mut text = first.to_vec();
    while let Some(chunk) = export.chunk().await.unwrap() {
        text.extend_from_slice(&chunk);
    }
    assert_eq!(rows(&String::from_utf8(text).unwrap()).len(), 40_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_the_database_cuts_short_says_so_itself() {
    let (desk, mut browser) = desk_with(Role::Support).await;
    sqlx::query("ALTER TABLE identities RENAME TO gone").execute(&desk.app.database.pool).await.unwrap();
    let answer = browser.get("/admin/users.csv").await;
    assert!(
        answer.text.trim_end().ends_with("INCOMPLETE: the database failed; export again"),
        "{}",
        answer.text
    );
    assert!(!answer.text.contains("identities"));
}
