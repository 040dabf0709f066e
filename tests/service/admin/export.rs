//! The export of the list of users.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::domain::actor::{Actor, Origin};
use vestibule::domain::staff::Role;
use vestibule::events::EventKind;
use vestibule::events::record::{DataAccess, record_access};

use super::{EXPORTS, file, staff_app_with};
use crate::support::cluster::Database;
use crate::support::process::run;
use crate::support::staff_app::{Browser, StaffApp};

/// Adds `count` users with this name.
async fn fill(staff_app: &StaffApp, count: i32, name: &str) {
    run!(
        &staff_app.app.database.pool,
        "INSERT INTO users (id, email, name)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@example.com', $2
         FROM generate_series(1, $1) AS n",
        count,
        name
    );
}

/// Parses a CSV file strictly.
fn read(file: &[u8]) -> Result<Vec<Vec<String>>, csv::Error> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(file)
        .deserialize()
        .collect()
}

/// Returns the number of rows that a program can read, and whether the file is complete.
fn read_what_there_is(file: &[u8]) -> (usize, bool) {
    let mut reader = csv::Reader::from_reader(file);
    let read: Vec<_> = reader.records().collect();
    (
        read.iter().filter(|row| row.is_ok()).count(),
        read.iter().all(Result::is_ok),
    )
}

async fn open(browser: &mut Browser, path: &str) -> reqwest::Response {
    let response = file(browser, path).await.send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_export_matches_the_list_and_defuses_formulas() {
    let (staff_app, mut browser) = staff_app_with(EXPORTS).await;
    let pool = &staff_app.app.database.pool;
    fill(&staff_app, 4_500, "Somebody").await;
    let names = [
        "=HYPERLINK(\"https://evil.example\")",
        "+1",
        "-1",
        "@SUM(A1)",
        " =1",
        "+1-1",
        "9912140633506421",
        "891e3",
        "a,\"b\"\r\nc",
        "é🦀",
    ];
    for (number, name) in names.iter().enumerate() {
        run!(
            pool,
            "UPDATE users SET name = $1, disabled_at = now() WHERE email = $2",
            name,
            format!("{}@example.com", number + 1)
        );
    }
    let today = async || -> String {
        sqlx::query_scalar("SELECT current_date::text")
            .fetch_one(pool)
            .await
            .unwrap()
    };
    let before = today().await;
    let response = open(&mut browser, "/admin/users.csv?sort=oldest").await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let files =
        [before, today().await].map(|day| format!("attachment; filename=\"users-{day}.csv\""));
    assert!(files.contains(&header("content-disposition")), "{files:?}");
    let file = response.bytes().await.unwrap();
    // Excel recognizes UTF-8 by the byte order mark.
    assert!(
        file.starts_with(b"\xef\xbb\xbfid,email,"),
        "{:?}",
        &file[..12]
    );
    let rows = read(&file).unwrap();
    assert_eq!(rows[0][..4], ["id", "email", "email_verified", "name"]);
    let addresses: Vec<_> = rows[1..].iter().map(|row| row[1].clone()).collect();
    assert_eq!(
        addresses,
        (1..=4_500)
            .map(|number| format!("{number}@example.com"))
            .collect::<Vec<_>>()
    );
    for (row, name) in rows[1..].iter().zip(names) {
        let defused = ["a,", "é"].iter().any(|sound| name.starts_with(sound));
        assert_eq!(
            row[3],
            if defused {
                name.to_owned()
            } else {
                format!("'{name}")
            }
        );
    }

    let disabled = read(
        &open(&mut browser, "/admin/users.csv?status=disabled")
            .await
            .bytes()
            .await
            .unwrap(),
    )
    .unwrap();
    assert_eq!(disabled.len(), 1 + names.len());
    let found = read(
        &open(&mut browser, "/admin/users.csv?q=4321%40")
            .await
            .bytes()
            .await
            .unwrap(),
    )
    .unwrap();
    assert_eq!((found.len(), found[1][1].as_str()), (2, "4321@example.com"));
    let nobody = open(&mut browser, "/admin/users.csv?created_from=nonsense")
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(read(&nobody).unwrap().len(), 1);

    let exports: Vec<(String, Value)> = all!(
        pool,
        "SELECT actor, detail FROM events WHERE kind = 'users_exported' AND ip IS NOT NULL ORDER BY id"
    );
    assert_eq!(exports.len(), 4, "each export is on record");
    assert!(
        exports
            .iter()
            .all(|(actor, _)| actor == "staff@example.com")
    );
    assert!(
        exports
            .iter()
            .all(|(_, detail)| detail["reason"] == "asked by the auditor")
    );
    assert_eq!(exports[1].1["search"], json!({ "status": "disabled" }));
    assert!(
        browser
            .get("/admin/users?status=disabled")
            .await
            .text
            .contains("/admin/users.csv?status=disabled")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_file_imports_again_with_its_names_whole() {
    let (staff_app, mut browser) = staff_app_with(EXPORTS).await;
    fill(&staff_app, 4, "Zoë Ødegård 艾達").await;
    for (email, name) in [
        ("2@example.com", "+1-1"),
        ("3@example.com", "04567"),
        ("4@example.com", "'Abd al-Rahman"),
    ] {
        run!(
            &staff_app.app.database.pool,
            "UPDATE users SET name = $1 WHERE email = $2",
            name,
            email
        );
    }
    let exported = open(&mut browser, "/admin/users.csv?sort=oldest")
        .await
        .bytes()
        .await
        .unwrap();
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("export-{}.csv", Uuid::now_v7()));
    std::fs::write(&file, &exported).unwrap();
    let database = Database::create().await;
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", database.url.as_str()),
    ];
    let own = ["providers", "last_seen_on", "disabled_at"]
        .map(|column| ["--ignore", column])
        .concat();
    let arguments = [&["import", file.to_str().unwrap()][..], &own].concat();
    let imported = run(&settings, &arguments).await;
    std::fs::remove_file(&file).unwrap();
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let users = "SELECT id::text || ' ' || email || ' ' || name FROM users ORDER BY id";
    let before: Vec<String> = values!(&staff_app.app.database.pool, users);
    let after: Vec<String> = values!(&database.pool, users);
    assert_eq!((before.len(), &after), (4, &before));
}

/// Waits until the service has sent the database no statement for a second.
async fn at_rest(staff_app: &StaffApp) {
    let asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vestibule' AND datname = current_database()
                 AND (state <> 'idle' OR state_change > clock_timestamp() - interval '1 second')";
    staff_app.app.database.until(asked, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_from_the_database_before_the_reader_takes_it() {
    // Much more data than the buffers of the connection hold.
    const USERS: usize = 25_000;
    let (staff_app, mut browser) = staff_app_with(EXPORTS).await;
    fill(
        &staff_app,
        i32::try_from(USERS).unwrap(),
        &"early ".repeat(160),
    )
    .await;
    let mut response = open(&mut browser, "/admin/users.csv").await;
    let mut file = response.chunk().await.unwrap().unwrap().to_vec();
    at_rest(&staff_app).await;
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vestibule'
                       AND datname = current_database() AND xact_start IS NOT NULL";
    assert_eq!(
        staff_app.app.database.count(connections).await,
        0,
        "no transaction waits for the reader"
    );
    // The new name marks rows that the service reads from here on, unlike rows in memory or sent.
    staff_app
        .app
        .database
        .run("UPDATE users SET name = 'late'")
        .await;
    while let Some(chunk) = response.chunk().await.unwrap() {
        file.extend(chunk);
    }
    let rows = read(&file).unwrap();
    let ids: BTreeSet<_> = rows[1..].iter().map(|row| row[0].clone()).collect();
    assert_eq!(
        (rows.len(), ids.len()),
        (1 + USERS, USERS),
        "everybody, once"
    );
    let late = rows.iter().filter(|row| row[3] == "late").count();
    assert!(
        late > USERS / 3,
        "only {late} were read when they were wanted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_export_is_recognizable_as_incomplete() {
    const USERS: usize = 12_500;
    let (staff_app, mut browser) = staff_app_with(EXPORTS).await;
    fill(
        &staff_app,
        i32::try_from(USERS).unwrap(),
        &"name ".repeat(240),
    )
    .await;
    for (change, back) in [
        (
            "UPDATE staff SET may_export = false WHERE role = 'support'",
            "UPDATE staff SET may_export = true",
        ),
        (
            "UPDATE staff SET ends_at = now() WHERE role = 'support'",
            "UPDATE staff SET ends_at = NULL",
        ),
        (
            "ALTER TABLE users RENAME TO gone",
            "ALTER TABLE gone RENAME TO users",
        ),
        ("DELETE FROM staff WHERE role = 'support'", "SELECT 1"),
    ] {
        let mut response = open(&mut browser, "/admin/users.csv").await;
        let mut file = response.chunk().await.unwrap().unwrap().to_vec();
        at_rest(&staff_app).await;
        staff_app.app.database.run(change).await;
        while let Ok(Some(chunk)) = response.chunk().await {
            file.extend(chunk);
        }
        let (rows, whole) = read_what_there_is(&file);
        assert!(
            rows < USERS && !whole,
            "{change}: a program finds it broken, after {rows}"
        );
        let text = String::from_utf8(file).unwrap();
        assert!(
            text.ends_with("It is not complete; please try again."),
            "{change}: and so does a person"
        );
        if change.starts_with("ALTER") {
            let request = super::file(&mut browser, "/admin/users.csv").await;
            let answer = browser.send(request).await;
            assert_eq!(answer.status, 500, "what fails at once is a page");
            assert!(
                answer
                    .header("content-type")
                    .unwrap()
                    .starts_with("text/html")
            );
        }
        staff_app.app.database.run(back).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_exports_has_the_right_and_says_why() {
    for path in ["/admin/users.csv", "/admin/audit.csv"] {
        let (staff_app, mut browser) = staff_app_with(Role::Support).await;
        fill(&staff_app, 10, "Somebody").await;
        let exports =
            "SELECT count(*) FROM events WHERE kind IN ('users_exported', 'audit_exported')";
        let page = path.trim_end_matches(".csv");
        assert!(
            !browser.get(page).await.text.contains(path),
            "support sees no form"
        );
        let refused = file(&mut browser, path).await;
        let refused = browser.send(refused).await;
        assert_eq!(refused.status, 403, "{path}");
        let shown = refused.text.replace("staff@example.com", "");
        assert!(!shown.contains("@example.com"), "{path}: {shown}");
        // The statement that records an export checks the permission itself.
        let pool = &staff_app.app.database.pool;
        let recorded = async |kind| {
            let look = DataAccess::list(kind, &[]);
            let reader = Actor::Staff("staff@example.com");
            record_access(
                &staff_app.app.database.service,
                look,
                reader,
                &Origin::default(),
            )
            .await
            .unwrap()
        };
        assert!(
            !recorded(EventKind::UsersExported).await && recorded(EventKind::UsersViewed).await
        );

        sqlx::query("UPDATE staff SET may_export = true")
            .execute(pool)
            .await
            .unwrap();
        assert!(
            browser.get(page).await.text.contains(path),
            "the right brings the form"
        );
        let csrf = browser.csrf().await;
        for (form, status) in [
            (&[("csrf", &*csrf)][..], 400),
            (&[("csrf", &csrf), ("reason", " ")], 400),
            (&[("reason", "x")], 403),
            (&[("csrf", "x"), ("reason", "x")], 403),
        ] {
            assert_eq!(
                browser.post(path, form).await.status,
                status,
                "{path} {form:?}"
            );
        }
        assert_eq!(
            browser.get(path).await.status,
            404,
            "{path}: a link fetches no file"
        );
        assert_eq!(staff_app.app.database.count(exports).await, 0, "{path}");
        let allowed = file(&mut browser, path).await;
        assert_eq!(browser.send(allowed).await.status, 200, "{path}");
        assert_eq!(staff_app.app.database.count(exports).await, 1, "{path}");
        staff_app
            .app
            .database
            .run("DELETE FROM staff WHERE email = 'staff@example.com'")
            .await;
        assert!(
            !recorded(EventKind::UsersViewed).await,
            "who is no longer staff"
        );
    }
}
