//! PostgreSQL refuses the service's login at run time: its password, its right to log in or its
//! database has changed.

use std::fs;
use std::time::Instant;

use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use url::Url;
use uuid::Uuid;

use crate::support::cluster::{Database, cluster};
use crate::support::process::{Process, eventually, free_port};
use crate::support::provider::Provider;
use crate::support::token::{claims, opaque};

/// Runs statements as a superuser, outside the test's database.
async fn run(superuser: &mut PgConnection, statements: &[String]) {
    for statement in statements {
        superuser
            .execute(AssertSqlSafe(statement.clone()))
            .await
            .expect(statement);
    }
}

/// Returns the status, the error and the presence of `Retry-After` of a sign-in's response.
async fn sign_in(service: &Process, provider: &Provider) -> (u16, String, bool) {
    let token = opaque();
    provider.accept(&token, claims("subject", "ada@example.com"));
    let answer = service.sign_in("idp", &json!({ "id_token": token })).await;
    (
        answer.status.as_u16(),
        answer.error(),
        answer.header("Retry-After").is_some(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_database_login_is_503_and_is_retried() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let mut superuser: PgConnection = cluster()
        .await
        .url("postgres")
        .parse::<PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap();
    let role = format!("service_{}", Uuid::now_v7().simple());
    run(
        &mut superuser,
        &[format!(
            "CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'first'"
        )],
    )
    .await;
    // The authentication rule requires a password for this role only.
    let file = cluster().await.data_dir().join("pg_hba.conf");
    let rules = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("local all {role} scram-sha-256\n{rules}")).unwrap();
    run(&mut superuser, &["SELECT pg_reload_conf()".to_owned()]).await;

    let mut url = Url::parse(&database.url).unwrap();
    url.set_username(&role).unwrap();
    url.set_password(Some("wrong")).unwrap();
    let wrong: PgConnectOptions = url.as_str().parse().unwrap();
    eventually("the wrong password is refused", async || {
        wrong.connect().await.err()
    })
    .await;
    url.set_password(Some("first")).unwrap();

    let begun = Instant::now();
    let service = Process::start(free_port(), url.as_str(), &provider.tokeninfo_url(), &[]);
    service.answers("/readyz", 200).await;
    assert_eq!(sign_in(&service, &provider).await.0, 201);

    let name = url.path().trim_start_matches('/').to_owned();
    let leave =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    let refused = (503, "service_unavailable".to_owned(), true);
    for (change, back) in [
        (
            format!("ALTER ROLE {role} PASSWORD 'second'"),
            format!("ALTER ROLE {role} PASSWORD 'first'"),
        ),
        (
            format!("ALTER ROLE {role} NOLOGIN"),
            format!("ALTER ROLE {role} LOGIN"),
        ),
        (
            format!("ALTER DATABASE {name} RENAME TO {role}"),
            format!("ALTER DATABASE {role} RENAME TO {name}"),
        ),
        (
            format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
            format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"),
        ),
    ] {
        eventually("the login changes", async || {
            superuser
                .execute(AssertSqlSafe(leave.clone()))
                .await
                .unwrap();
            superuser.execute(AssertSqlSafe(change.clone())).await.ok()
        })
        .await;
        run(&mut superuser, std::slice::from_ref(&leave)).await;
        for _ in 0..3 {
            assert_eq!(
                sign_in(&service, &provider).await,
                refused,
                "{change}: {}",
                service.log()
            );
        }
        assert_eq!(service.answers("/livez", 200).await, "ok\n");
        service.answers("/readyz", 503).await;
        run(&mut superuser, &[back]).await;
        assert_eq!(
            sign_in(&service, &provider).await.0,
            200,
            "{change}: {}",
            service.log()
        );
        service.answers("/readyz", 200).await;
    }
    let log = service.log();
    // The service repeats the line every half minute of its clock, which has whole seconds.
    let most = 1 + (begun.elapsed().as_secs() + 1) / 30;
    let lines = log
        .lines()
        .filter(|line| line.contains("the database refuses the service's login"))
        .count();
    assert!((1..=most).contains(&(lines as u64)), "{log}");
    assert!(
        log.contains("password authentication failed for user"),
        "{log}"
    );
    for cause in [
        "password authentication failed",
        "is not permitted to log in",
        "does not exist",
        "accepting",
    ] {
        let told = |line: &&str| {
            line.contains("/readyz")
                && line.contains("database: failed (the database is unavailable: ")
                && line.contains(cause)
        };
        assert!(log.lines().any(|line| told(&line)), "{cause}: {log}");
    }
    drop(service);
    run(&mut superuser, std::slice::from_ref(&leave)).await;
    let reassign = format!("REASSIGN OWNED BY {role} TO CURRENT_USER");
    sqlx::raw_sql(AssertSqlSafe(reassign))
        .execute(&database.pool)
        .await
        .unwrap();
    run(&mut superuser, &[format!("DROP ROLE {role}")]).await;
    superuser.close().await.unwrap();
    fs::write(&file, rules).unwrap();
}
