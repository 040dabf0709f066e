//! PgBouncer in transaction mode between the service and PostgreSQL, with `deploy/pgbouncer.ini`.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Client;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpStream;
use vestibule::dev::identity_provider::IdentityProvider;
use vestibule::secret::Secret;

use crate::deploy::outage::{new_server, server};
use crate::deploy::phone::PhoneUsers;
use crate::deploy::tools::{Running, alone, folder, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::programs::{program, version};
use crate::support::cluster::Database;
use crate::support::process::{eventually, free_port, until};
use crate::support::provider::Provider;
use crate::support::staff_app::{Browser, serve};
use crate::support::token::CLIENT_ID;

/// Longest wait for a database that has recovered.
const BEARABLE: Duration = Duration::from_secs(5);
const PREPARED: &str = "max_prepared_statements = 200\n";

/// PgBouncer for one database.
struct PgBouncer {
    /// The URL of the database through PgBouncer.
    url: String,
    _running: Running,
}

impl PgBouncer {
    /// Starts it with some of the shipped settings replaced.
    async fn start(
        program: &Path,
        folder: &Path,
        database: &str,
        changes: &[(&str, &str)],
    ) -> Self {
        let server: PgConnectOptions = database.parse().unwrap();
        let socket = server
            .get_socket()
            .expect("the tests' server has a socket")
            .display()
            .to_string();
        let name = server.get_database().unwrap();
        let user = server.get_username();
        let port = free_port();
        let users = folder.join("userlist.txt");
        fs::write(&users, format!("\"{user}\" \"its password\"\n")).unwrap();
        let place = format!("host={socket} port={} dbname={name}", server.get_port());
        let own = [
            ("host=10.0.0.20 port=5432 dbname=vestibule", place.as_str()),
            ("listen_addr = 10.0.0.15", "listen_addr = 127.0.0.1"),
            ("listen_port = 6432", &format!("listen_port = {port}")),
            ("/etc/pgbouncer/userlist.txt", users.to_str().unwrap()),
        ];
        let text = shipped("pgbouncer.ini", &[&own, changes].concat());
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, text).unwrap();
        let log = folder.join("pgbouncer.log");
        let running = Running::start_as_server(program, &log, |command| {
            command.arg(&file);
        });
        eventually(
            &format!("PgBouncer listens; see {}", log.display()),
            async || TcpStream::connect(("127.0.0.1", port)).await.ok(),
        )
        .await;
        Self {
            url: format!("postgres://{user}:its%20password@127.0.0.1:{port}/vestibule"),
            _running: running,
        }
    }
}

/// The first version of PgBouncer that tracks prepared statements.
const CAPABLE: (u32, u32) = (1, 21);

/// Sets the role's time limits, since PgBouncer passes none on from clients.
async fn limit(database: &Database) {
    let options: PgConnectOptions = database.url.parse().unwrap();
    let role = options.get_username().to_owned();
    let name = options.get_database().unwrap().to_owned();
    for limit in [
        "lock_timeout = '2s'",
        "statement_timeout = '10s'",
        "idle_in_transaction_session_timeout = '10s'",
    ] {
        let sql = format!("ALTER ROLE {role} IN DATABASE {name} SET {limit}");
        sqlx::query(AssertSqlSafe(sql))
            .execute(&database.pool)
            .await
            .unwrap();
    }
}

/// Serves a provider for staff's sign-ins, and returns its issuer.
async fn staff_provider(folder: &Path) -> String {
    let port = free_port();
    let issuer = format!("http://127.0.0.1:{port}/dev/idp");
    let secret = Secret::new("hush".to_owned());
    let provider =
        IdentityProvider::open(folder, issuer.clone(), CLIENT_ID.into(), secret).unwrap();
    serve(provider, port).await;
    issuer
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_start_together_and_do_all_their_work_through_pgbouncer() {
    let _alone = alone().await;
    let Some(program) = program("pgbouncer", CAPABLE) else {
        return;
    };
    let folder = folder("pgbouncer");
    let database = Database::bare().await;
    limit(&database).await;
    // Fewer connections from PgBouncer to the server than from the instances to PgBouncer.
    let few = [("default_pool_size = 16", "default_pool_size = 4")];
    let pooler = PgBouncer::start(&program, &folder, &database.url, &few).await;
    let provider = Arc::new(Provider::start().await);
    let issuer = staff_provider(&folder).await;
    let mut instances = [(); 2].map(|()| {
        let instance = Vestibule::new(&folder, &pooler.url, &provider.tokeninfo_url());
        let url = instance.url();
        let staff = format!(
            "{{staff={{preset=\"oidc\",issuer=\"{issuer}\",client_id=\"{CLIENT_ID}\",client_secret=\"hush\"}}}}"
        );
        instance.with_all(&[
            ("ROCKET_PUBLIC_URL", &url),
            ("ROCKET_PROVIDERS", &staff),
            ("ROCKET_ADMIN", "{provider=\"staff\"}"),
        ])
    });
    for instance in &mut instances {
        instance.start();
    }
    for instance in &instances {
        instance.ready().await;
        assert!(!instance.said().contains("WARN"), "{}", instance.said());
    }
    assert_eq!(database.count("SELECT count(*) FROM signing_keys").await, 1);

    let phone_users_of_each = instances.each_ref().map(|instance| {
        PhoneUsers::start(
            [(); 4].map(|()| Client::new()).into(),
            &instance.url(),
            &provider,
        )
    });
    instances[0].appoint("ada@example.com");
    let mut browser = Browser::new(&instances[0].url());
    let landed = browser.sign_in("ada@example.com").await;
    assert_eq!(landed.status, 303, "{}", landed.text);
    for page in [
        "/admin",
        "/admin/users?q=example",
        "/admin/audit",
        "/admin/staff",
    ] {
        let answer = browser.get(page).await;
        assert_eq!(answer.status, 200, "{page}: {}", answer.text);
    }
    for phone_users in &phone_users_of_each {
        until("people are at it", async || phone_users.answers() > 300).await;
    }
    for phone_users in phone_users_of_each {
        phone_users.stop().await;
    }
    let said = instances[0].check();
    assert!(
        said.contains("ok     database") && !said.contains("pooler"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pgbouncer_that_mixes_up_statements_is_refused_at_the_start() {
    let _alone = alone().await;
    let Some(program) = program("pgbouncer", (1, 18)) else {
        return;
    };
    let apart = version(&program) >= Some(CAPABLE);
    let folder = folder("pgbouncer-old");
    let database = Database::bare().await;
    // Old versions do not know the setting.
    let off = if apart {
        "max_prepared_statements = 0\n"
    } else {
        ""
    };
    let pooler = PgBouncer::start(&program, &folder, &database.url, &[(PREPARED, off)]).await;
    let mut instance = Vestibule::new(&folder, &pooler.url, "http://127.0.0.1:1/");
    instance.start();
    assert_eq!(instance.ended().await, Some(1));
    let said = instance.said();
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("\"level\":\"ERROR\""))
            .count(),
        1,
        "{said}"
    );
    assert!(
        said.contains("PgBouncer 1.21 or newer with max_prepared_statements"),
        "{said}"
    );
    let said = instance.check();
    assert!(
        said.contains(
            "wrong  pooler: mixes up the prepared statements of its clients; use PgBouncer 1.21"
        ),
        "{said}"
    );
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(database.count(tables).await, 0, "nothing was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_limits_that_pgbouncer_drops_are_told_of() {
    let _alone = alone().await;
    let Some(program) = program("pgbouncer", CAPABLE) else {
        return;
    };
    let folder = folder("pgbouncer-limits");
    let database = Database::create().await;
    let pooler = PgBouncer::start(&program, &folder, &database.url, &[]).await;
    let instance = Vestibule::new(&folder, &pooler.url, "http://127.0.0.1:1/")
        .started()
        .await;
    assert!(
        instance.said().contains("ALTER ROLE"),
        "{}",
        instance.said()
    );
    let said = instance.check();
    assert!(
        said.contains("warn   pooler: drops the service's timeouts; set them"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_back_is_found_through_pgbouncer_within_seconds() {
    let _alone = alone().await;
    let Some(program) = program("pgbouncer", CAPABLE) else {
        return;
    };
    let folder = folder("pgbouncer-back");
    let postgres = new_server();
    postgres.ensure_database("back").unwrap();
    let pooler = PgBouncer::start(&program, &folder, &postgres.url("back"), &[]).await;
    let instance = Vestibule::new(&folder, &pooler.url, "http://127.0.0.1:1/")
        .started()
        .await;
    postgres.stop();
    until("it is not ready", async || {
        let answer = reqwest::get(format!("{}/readyz", instance.url()))
            .await
            .unwrap();
        answer.status() == 503
    })
    .await;
    let _postgres = server();
    let back = Instant::now();
    instance.ready().await;
    let found = back.elapsed();
    println!("found after {found:?}");
    assert!(found < BEARABLE, "{found:?}");
}
