//! Separate database roles for the schema and the service, created as docs/production.md says.

use std::process::Output;

use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use url::Url;
use uuid::Uuid;

use crate::support::cluster::cluster;
use crate::support::process::{self, Process, free_port};
use crate::support::provider::Provider;
use crate::support::token::{claims, opaque};

const PAGE: &str = include_str!("../../../docs/production.md");

/// A database with both roles, whose names are unique.
struct TwoRoles {
    number: String,
}

impl TwoRoles {
    /// Runs the statements of the page with unique names.
    async fn create() -> Self {
        let roles = Self {
            number: Uuid::now_v7().simple().to_string(),
        };
        let block = PAGE
            .split("one role owns it and another one serves.")
            .nth(1)
            .expect("the page has the block");
        let lines = block.lines().skip(1).skip_while(|line| line.is_empty());
        let block: Vec<_> = lines.take_while(|line| line.starts_with("    ")).collect();
        let block = roles.own(&block.join("\n"));
        let (server, database) = block
            .split_once("\\connect")
            .expect("it changes the database");
        let (name, database) = database.split_once('\n').unwrap();
        assert_eq!(name.trim(), roles.own("vestibule"));
        for (place, statements) in [("postgres", server), (name.trim(), database)] {
            let mut superuser = connect(&cluster().await.url(place)).await;
            for statement in statements
                .split_inclusive(';')
                .filter(|text| text.contains(';'))
            {
                superuser
                    .execute(AssertSqlSafe(statement.to_owned()))
                    .await
                    .expect(statement);
            }
        }
        roles
    }

    /// Replaces the names of the page in a text.
    fn own(&self, text: &str) -> String {
        text.replace("vestibule", &format!("vestibule_{}", self.number))
    }

    /// Returns the database URL for a role.
    async fn url(&self, role: &str) -> String {
        let mut url = Url::parse(&cluster().await.url(&self.own("vestibule"))).unwrap();
        url.set_username(&self.own(role)).unwrap();
        url.into()
    }

    async fn remove(self) {
        let mut superuser = connect(&cluster().await.url("postgres")).await;
        for statement in [
            "DROP DATABASE vestibule WITH (FORCE)",
            "DROP ROLE vestibule_owner",
            "DROP ROLE vestibule_service",
        ] {
            superuser
                .execute(AssertSqlSafe(self.own(statement)))
                .await
                .unwrap();
        }
    }
}

async fn connect(url: &str) -> PgConnection {
    url.parse::<sqlx::postgres::PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap()
}

async fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_one(connection)
        .await
        .unwrap()
}

/// Runs a command in the release profile.
async fn run(url: &str, command: &str) -> Output {
    let output = process::run(
        &[("ROCKET_PROFILE", "release"), ("DATABASE_URL", url)],
        &[command],
    )
    .await;
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Signs in and refreshes.
async fn use_it(service: &Process, provider: &Provider, subject: &str) {
    let client = reqwest::Client::new();
    let post = async |path: &str, body: serde_json::Value| -> serde_json::Value {
        let request = client
            .post(format!("{}/api/v1/auth/{path}", service.url))
            .body(body.to_string());
        let answer = request
            .header("Content-Type", "application/json")
            .send()
            .await
            .unwrap();
        serde_json::from_str(&answer.error_for_status().unwrap().text().await.unwrap()).unwrap()
    };
    let token = opaque();
    provider.accept(&token, claims(subject, &format!("{subject}@example.com")));
    let signed_in = post("oauth/idp", json!({ "id_token": token })).await;
    let refreshed = post(
        "refresh",
        json!({ "refresh_token": signed_in["refresh_token"] }),
    )
    .await;
    assert!(refreshed["access_token"].is_string(), "{refreshed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_owns_nothing_serves_what_the_owner_has_migrated() {
    let roles = TwoRoles::create().await;
    let provider = Provider::start().await;
    let owner = roles.url("vestibule_owner").await;
    let service = roles.url("vestibule_service").await;
    let start = || Process::start(free_port(), &service, &provider.tokeninfo_url(), &[]);
    let mut schema = connect(&owner).await;

    let mut early = start();
    assert_eq!(early.ended().await.code(), Some(1), "{}", early.log());
    for words in [
        "migrations are not applied, starting with 20261122043900",
        "permission denied",
        "`vestibule migrate`",
    ] {
        assert!(early.log().contains(words), "{words}: {}", early.log());
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(number(&mut schema, tables).await, 0);

    let tokeninfo = provider.tokeninfo_url();
    let settings = process::complete_settings(&service, &tokeninfo);
    let checked = process::run(&settings, &["check"]).await;
    let checked = String::from_utf8(checked.stdout).unwrap();
    assert!(
        checked.contains("wrong  schema") && checked.contains("as the role that owns the schema"),
        "{checked}"
    );

    let dry = process::run(
        &[("ROCKET_PROFILE", "release"), ("DATABASE_URL", &owner)],
        &["migrate", "--dry-run"],
    )
    .await;
    let missing = String::from_utf8(dry.stdout).unwrap();
    assert!(
        missing.contains("migration 20261122043900 is missing"),
        "{missing}"
    );
    assert_eq!(number(&mut schema, tables).await, 0, "it changes nothing");
    let applied = String::from_utf8(run(&owner, "migrate").await.stdout).unwrap();
    assert_eq!(applied, missing.replace("is missing", "is applied"));
    let again = String::from_utf8(run(&owner, "migrate").await.stdout).unwrap();
    assert_eq!(again, "no migration is missing\n");
    let check =
        async || String::from_utf8(process::run(&settings, &["check"]).await.stdout).unwrap();
    assert!(!check().await.contains("privileges"));
    let own = |sql: &str| AssertSqlSafe(roles.own(sql));
    let mut checked = String::new();
    for (closed, told) in [
        ("UPDATE ON sessions", "sessions; run GRANT"),
        ("DELETE ON users", "sessions, nor 1 other table; run GRANT"),
        (
            "ALL ON ALL TABLES IN SCHEMA public",
            "_sqlx_migrations, nor ",
        ),
    ] {
        schema
            .execute(own(&format!("REVOKE {closed} FROM vestibule_service")))
            .await
            .unwrap();
        checked = check().await;
        let told = format!("wrong  privileges: this role may not read and write {told}");
        assert!(checked.contains(&told), "{told}: {checked}");
    }
    let remedy = checked
        .split_once("GRANT ")
        .unwrap()
        .1
        .split_once(" as the owner")
        .unwrap()
        .0;
    let remedy = format!("GRANT {}", remedy.replace("this role", "vestibule_service"));
    schema.execute(own(&remedy)).await.unwrap();

    let running = start();
    running.answers("/readyz", 200).await;
    use_it(&running, &provider, "ada").await;
    assert!(!running.log().contains("WARN"), "{}", running.log());
    drop(running);

    // The owner has not created this month's partition.
    let this = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"events_\"YYYY_MM')";
    let this: String = sqlx::query_scalar(this)
        .fetch_one(&mut schema)
        .await
        .unwrap();
    schema
        .execute(AssertSqlSafe(format!("DROP TABLE {this}")))
        .await
        .unwrap();
    let running = start();
    running.answers("/readyz", 200).await;
    use_it(&running, &provider, "grace").await;
    assert_eq!(
        running
            .log()
            .matches("this role may not create or drop them")
            .count(),
        1,
        "{}",
        running.log()
    );
    run(&service, "prune").await;
    let in_default = "SELECT count(*) FROM ONLY events_default";
    assert_eq!(
        number(&mut schema, in_default).await,
        2,
        "the new user, and the command"
    );

    run(&owner, "migrate").await;
    assert_eq!(number(&mut schema, in_default).await, 0);
    use_it(&running, &provider, "linus").await;
    assert_eq!(number(&mut schema, in_default).await, 0);
    assert_eq!(
        number(&mut schema, &format!("SELECT count(*) FROM {this}")).await,
        3
    );
    drop(running);
    schema.close().await.unwrap();
    roles.remove().await;
}
