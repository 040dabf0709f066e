//! The start of the program: it waits for its database, and its log is machine-readable.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, date_time_ymd};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use url::Url;
use uuid::Uuid;
use vestibule::database::migrations;

use crate::support::cluster::Database;
use crate::support::process::{Process, eventually, free_port};
use crate::support::provider::Provider;
use crate::support::receiver::Receiver;
use crate::support::relay::SocketLink;
use crate::support::tls::SelfSigned;
use crate::support::token::{ISSUER, claims};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_started_before_its_database_stays_alive_and_becomes_ready() {
    let database = Database::bare().await;
    let provider = Provider::start().await;
    let socket_link = SocketLink::cut_to(&database).await;
    let service = Process::start(
        free_port(),
        &socket_link.url,
        &provider.tokeninfo_url(),
        &[],
    );
    assert_eq!(service.answers("/livez", 200).await, "ok\n");
    let listening = eventually("it says that it listens", async || {
        let line = service
            .log()
            .lines()
            .find(|line| line.contains("\"listening\""))?
            .to_owned();
        serde_json::from_str::<Value>(&line).ok()
    });
    let listening = listening.await;
    assert_eq!(
        (&listening["version"], &listening["providers"]),
        (&json!("0.1.0"), &json!("idp")),
        "{listening}"
    );
    let name = socket_link
        .url
        .split(['/', '?'])
        .find(|part| part.starts_with("test_"))
        .unwrap();
    assert_eq!(listening["database"], name, "{listening}");
    let hosts = listening["database_hosts"].as_str().unwrap();
    assert!(
        hosts.contains("/vestibule-") && hosts.ends_with(":5432"),
        "{listening}"
    );
    let readiness: Value = serde_json::from_str(&service.answers("/readyz", 503).await).unwrap();
    assert_eq!(
        readiness,
        json!({ "service": "starting", "database": "failed", "migrations": "unknown", "keys": "none" })
    );
    let problem: Value = serde_json::from_str(&service.answers("/api/v1/me", 503).await).unwrap();
    assert_eq!(problem["error"], "service_unavailable");
    for path in ["/admin", "/.well-known/jwks.json"] {
        service.answers(path, 503).await;
    }
    socket_link.mend();
    let there = Instant::now();
    let ready = async {
        service.answers("/readyz", 200).await;
        assert!(
            there.elapsed() < Duration::from_secs(10),
            "{:?}",
            there.elapsed()
        );
        service.answers("/api/v1/me", 401).await;
    };
    // Meanwhile, each request on a new connection is accepted.
    let alive = async {
        loop {
            let answer = service
                .client
                .get(format!("{}/livez", service.url))
                .send()
                .await
                .expect("the port is open");
            assert_eq!(answer.status(), 200);
        }
    };
    tokio::select! {
        () = ready => {}
        never = alive => never,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_late_ends_the_service_and_says_why() {
    let database = Database::create().await;
    let socket_link = SocketLink::cut_to(&database).await;
    let mut service = Process::start(free_port(), &socket_link.url, "http://127.0.0.1:1", &[]);
    service.answers("/livez", 200).await;
    for statement in ["UPDATE oldest_version SET version = '9.9.9'", OF_THE_FUTURE] {
        database.run(statement).await;
    }
    socket_link.mend();
    assert_eq!(service.ended().await.code(), Some(1), "{}", service.log());
    assert!(
        service.log().contains("the migration of the schema failed"),
        "{}",
        service.log()
    );
}

/// Schema changes of a newer release: new tables, columns and indexes, and a migration that stopped
/// half-way.
const ADDED: &str = "
    CREATE TABLE passkeys (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE);
    ALTER TABLE users ADD COLUMN nickname text, ADD COLUMN level integer NOT NULL DEFAULT 1;
    ALTER TABLE identities ADD COLUMN seen_at timestamptz;
    ALTER TABLE sessions ADD COLUMN kind text NOT NULL DEFAULT 'app';
    ALTER TABLE events ADD COLUMN country text;
    CREATE INDEX sessions_kind_idx ON sessions (kind);
    INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
    VALUES (99991231235958, 'half of the future', false, 'x', 1)";
const OF_THE_FUTURE: &str = "
    INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
    VALUES (99991231235959, 'of the future', true, 'x', 1)";

#[tokio::test(flavor = "multi_thread")]
async fn an_old_program_starts_on_newer_schemas_unless_those_forbid_it() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    for statement in [ADDED, OF_THE_FUTURE] {
        sqlx::raw_sql(statement)
            .execute(&database.pool)
            .await
            .unwrap();
    }
    let start = || Process::start(free_port(), &database.url, &provider.tokeninfo_url(), &[]);
    let service = start();
    service.answers("/readyz", 200).await;
    let mut refresh_token = String::new();
    for outcome in ["created", "signed_in"] {
        let token = provider.token(claims("subject-of-ada", "ada@example.com"));
        let signed_in = service.sign_in("idp", &json!({ "id_token": token })).await;
        assert_eq!(signed_in.outcome(), outcome);
        refresh_token = signed_in.refresh_token();
    }
    let body = json!({ "refresh_token": refresh_token });
    let refreshed = service.post("/api/v1/auth/refresh", &[], &body).await;
    assert_ne!(refreshed.access_token(), "", "{}", refreshed.text);
    assert!(
        service
            .log()
            .contains("a newer release has migrated the schema"),
        "{}",
        service.log()
    );

    database
        .run("UPDATE oldest_version SET version = '9.0.0'")
        .await;
    service.answers("/readyz", 200).await;
    let mut late = start();
    assert_eq!(late.ended().await.code(), Some(1), "{}", late.log());
    for words in [
        "99991231235958 belongs to a newer release",
        "start version 9.0.0 or newer",
    ] {
        assert!(late.log().contains(words), "{words}: {}", late.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_survives_more_clients_than_the_open_file_limit() {
    let database = Database::bare().await;
    let provider = Provider::start().await;
    let port = free_port();
    let service = Process::start_limited(port, &database.url, &provider.tokeninfo_url(), 100);
    service.answers("/readyz", 200).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    service.answers("/readyz", 200).await;
    assert!(service.log().contains("open files"), "{}", service.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_waiting_for_its_database_stops_on_sigterm() {
    let database = Database::bare().await;
    let socket_link = SocketLink::cut_to(&database).await;
    let mut service = Process::start(free_port(), &socket_link.url, "http://127.0.0.1:1", &[]);
    service.answers("/livez", 200).await;
    service.terminate();
    assert!(service.ended().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_waiting_for_another_instances_migration_stops_on_sigterm() {
    let database = Database::create().await;
    let socket_link = SocketLink::cut_to(&database).await;
    let mut service = Process::start(free_port(), &socket_link.url, "http://127.0.0.1:1", &[]);
    service.answers("/livez", 200).await;
    let mut other = database.pool.acquire().await.unwrap();
    let turn = migrations::take_turn(&mut other).await.unwrap();
    socket_link.mend();
    service
        .tells("another instance is migrating the schema", 1)
        .await;
    service.terminate();
    assert!(service.ended().await.success());
    turn.rollback().await.unwrap();
}

/// Starts a server that speaks enough PostgreSQL for TLS with this certificate, and returns its
/// port.
async fn postgres_with(certificate: &SelfSigned) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = certificate.url().replace("https://", "");
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            // PostgreSQL, "SSL Session Encryption": the client requests TLS, and the server replies
            // `S`.
            client.read_exact(&mut [0; 8]).await.unwrap();
            client.write_all(b"S").await.unwrap();
            let mut server = TcpStream::connect(&server).await.unwrap();
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_certificate_nobody_vouches_for_is_not_waited_for() {
    let certificate = SelfSigned::start().await;
    let port = postgres_with(&certificate).await;
    for (number, mode) in ["verify-full", "verify-ca"].into_iter().enumerate() {
        let url = format!("postgres://vestibule@localhost:{port}/vestibule?sslmode={mode}");
        let mut service = Process::start(free_port(), &url, "http://127.0.0.1:1", &[]);
        assert_eq!(
            service.ended().await.code(),
            Some(1),
            "{mode}: {}",
            service.log()
        );
        assert_eq!(certificate.handshakes(), number + 1);
        let words = [
            "the connection to the database failed",
            "UnknownIssuer",
            "set sslrootcert in DATABASE_URL",
        ];
        for words in words {
            assert!(
                service.log().contains(words),
                "{mode}, {words}: {}",
                service.log()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsuitable_database_certificate_is_reported_with_a_remedy() {
    let expired =
        SelfSigned::start_with(|parameters| parameters.not_after = date_time_ymd(2021, 1, 1)).await;
    let authority = |parameters: &mut CertificateParams| {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    };
    let authority = SelfSigned::start_with(authority).await;
    let valid = SelfSigned::start().await;
    for (certificate, host, remedy) in [
        (&expired, "localhost", "renew the server's certificate"),
        (
            &authority,
            "localhost",
            "that a certificate authority signed",
        ),
        (
            &valid,
            "127.0.0.1",
            "name the server in DATABASE_URL as its certificate does",
        ),
    ] {
        let root =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("root-{}.pem", Uuid::now_v7()));
        fs::write(&root, &certificate.pem).unwrap();
        let port = postgres_with(certificate).await;
        let url = format!("postgres://vestibule@{host}:{port}/vestibule?sslmode=verify-full");
        let settings = [("PGSSLROOTCERT", root.to_str().unwrap())];
        let mut service = Process::start(free_port(), &url, "http://127.0.0.1:1", &settings);
        assert_eq!(service.ended().await.code(), Some(1), "{}", service.log());
        assert!(
            service.log().contains(remedy),
            "{remedy}: {}",
            service.log()
        );
        fs::remove_file(&root).unwrap();
        let mut service = Process::start(free_port(), &url, "http://127.0.0.1:1", &settings);
        assert_eq!(service.ended().await.code(), Some(1), "{}", service.log());
        assert!(
            service
                .log()
                .contains("PGSSLROOTCERT, which names a file that cannot be read"),
            "{}",
            service.log()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_log_line_is_a_json_object_without_secrets() {
    let database = Database::bare().await;
    let provider = Provider::start().await;
    let settings = [("ROCKET_TRUSTED_PROXIES", "127.0.0.1")];
    let mut service = Process::ready(&database, &provider, &settings).await;
    let token = provider.token(claims("subject-of-ada", "ada@example.com"));
    let body = json!({ "id_token": token, "device": { "name": "a\nb" } });
    // None of these values may become a line of the log.
    let headers = [
        ("X-Request-Id", "mine.1"),
        ("User-Agent", "\t{\"level\":\"FORGED\"}"),
    ];
    for (name, status) in [("idp", 201), ("%0Aforged", 404)] {
        let path = format!("/api/v1/auth/oauth/{name}");
        assert_eq!(service.post(&path, &headers, &body).await.status, status);
    }
    let metrics = service.answers("/metrics", 200).await;
    service.terminate();
    assert!(service.ended().await.success());

    let log = service.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let requests: Vec<_> = lines
        .iter()
        .filter(|line| line["request_id"] == "mine.1")
        .collect();
    assert_eq!(requests.len(), 2, "{log}");
    assert_eq!(requests[0]["route"], "/api/v1/auth/oauth/<_>");
    assert_eq!(
        (&requests[0]["message"], &requests[0]["status"]),
        (&json!("request"), &json!(201))
    );
    assert_eq!(
        (&requests[0]["provider"], &requests[0]["outcome"]),
        (&json!("idp"), &json!("created"))
    );
    assert_eq!(requests[1]["error"], "provider_not_found");
    assert_eq!(
        (&requests[1]["provider"], &requests[1]["outcome"]),
        (&Value::Null, &json!("provider_not_found"))
    );
    for line in &lines {
        let at = line["timestamp"].as_str().unwrap();
        assert!(at.ends_with('Z') && line["level"].is_string(), "{line}");
    }
    for secret in [
        token.as_str(),
        "ada@",
        "subject-of",
        "FORGED",
        "forged",
        "secret key",
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
    assert!(
        !log.contains("guard"),
        "Rocket tells what our lines tell: {log}"
    );
    // Statements take time, and so do waits for connections.
    for name in [
        "vestibule_database_statement_seconds_count",
        "vestibule_database_wait_seconds_count",
    ] {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(name))
            .expect(name);
        let count: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(count > 0, "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_refusal_ends_the_start_with_one_formatted_error() {
    let database = Database::bare().await;
    let mut nobody = Url::parse(&database.url).unwrap();
    nobody.set_username("nobody-of-that-name").unwrap();
    let mut nowhere = Url::parse(&database.url).unwrap();
    nowhere.set_path("no-database-of-that-name");
    for (format, level, url) in [
        ("json", "info", &nobody),
        ("json", "error", &nowhere),
        ("json", "off", &nowhere),
        ("text", "info", &nowhere),
    ] {
        let settings = [("ROCKET_LOG_FORMAT", format), ("ROCKET_LOG_LEVEL", level)];
        let mut service =
            Process::start(free_port(), url.as_str(), "http://127.0.0.1:1", &settings);
        assert_eq!(service.ended().await.code(), Some(1), "{}", service.log());
        let log = service.log();
        let last = log.lines().last().unwrap();
        let said = if (format, level) == ("json", "off") || format == "text" {
            last.strip_prefix("vestibule: ").expect(last).to_owned()
        } else {
            let line: Value = serde_json::from_str(last).expect(last);
            assert_eq!(line["level"], "ERROR");
            line["message"].as_str().unwrap().to_owned()
        };
        assert!(
            said.starts_with("the connection to the database failed"),
            "{said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_applies_all_changed_settings_or_none() {
    const SHOP: &str =
        "[default.webhooks.shop]\nsecret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\"\n";
    let database = Database::bare().await;
    let provider = Provider::start().await;
    let shop = Receiver::start().await;
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("settings-{}.toml", Uuid::now_v7()));
    let secret_file = file.with_extension("secret");
    let write = |secret: &str, top: &str, limit: &str, rest: &str| {
        fs::write(&secret_file, secret).unwrap();
        let tokeninfo = provider.tokeninfo_url();
        let secret_file = secret_file.display();
        let settings = format!(
            "[default]\n{top}\n[default.rate_limit]\nsign_in_per_minute = {limit}\n[default.providers.introspection]\n\
             preset = \"rfc7662\"\nclient_id = \"app\"\nclient_secret_file = \"{secret_file}\"\nissuers = \"{ISSUER}\"\n\
             tokeninfo_url = \"{tokeninfo}\"\n{rest}"
        );
        fs::write(&file, settings).unwrap();
    };
    write("one", "", "60", "");
    let settings = [("ROCKET_CONFIG", file.to_str().unwrap())];
    let mut service = Process::ready(&database, &provider, &settings).await;
    // Returns the limit in a sign-in's response, and the credentials that the service sent to the
    // provider.
    let used = async || {
        let answer = service
            .sign_in("introspection", &json!({ "id_token": "a-token" }))
            .await;
        let credentials = provider
            .requests()
            .pop()
            .unwrap()
            .header("authorization")
            .unwrap()
            .to_owned();
        let policy = answer.headers["ratelimit-policy"]
            .to_str()
            .unwrap()
            .to_owned();
        (policy.split(';').nth(1).unwrap().to_owned(), credentials)
    };
    let with = |limit: &str, secret: &str| {
        (
            format!("q={limit}"),
            format!("Basic {}", STANDARD.encode(format!("app:{secret}"))),
        )
    };
    assert_eq!(used().await, with("60", "one"));
    assert!(!service.log().contains("\"DEBUG\""));

    let webhook = format!("{SHOP}url = \"{}\"\n", shop.url);
    write("two", "log_level = \"debug\"", "7", &webhook);
    service.signal(Signal::HUP);
    let log = service.tells("and the changes applied", 1).await;
    let changed = "log_level, providers.introspection.client_secret, rate_limit.sign_in_per_minute, webhooks.shop";
    assert!(log.contains(&format!("\"changed\":\"{changed}\"")), "{log}");
    assert_eq!(used().await, with("7", "two"));
    let token = provider.token(claims("ada", "ada@example.com"));
    assert_eq!(
        service
            .sign_in("idp", &json!({ "id_token": token }))
            .await
            .status,
        201
    );
    assert_eq!(shop.received_all(1).await[0].kind(), "user.created");
    service.answers("/livez", 200).await;
    service.tells("\"DEBUG\"", 1).await;

    // One file has a setting that needs a restart, the other has an invalid one.
    for (top, limit, told, why) in [
        (
            "drain = 9",
            "60",
            "since some need a restart",
            "\"needs_restart\":\"drain\"",
        ),
        (
            "",
            "0",
            "the service goes on with those that it has",
            "`rate_limit.sign_in_per_minute`",
        ),
    ] {
        write("three", top, limit, "");
        service.signal(Signal::HUP);
        let log = service.tells(told, 1).await;
        assert!(log.contains(why), "{log}");
        assert_eq!(used().await, with("7", "two"), "{told}");
    }
    write("two", "log_level = \"debug\"", "7", &webhook);
    service.signal(Signal::HUP);
    service.tells("none has changed", 1).await;
    let log = service.log();
    assert!(!log.contains("three") && !log.contains("whsec_"), "{log}");
    service.terminate();
    assert!(service.ended().await.success());
}
