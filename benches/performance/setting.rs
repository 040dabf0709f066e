//! The setting of the measurements: a PostgreSQL with its default settings, a provider, and the
//! release binary, each a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use tokio::task::JoinSet;
use vestibule::accounts::tokens::opaque_token::OpaqueToken;
use vestibule::dev::postgres::{Options, Postgres, ROLE};

use super::stand_in::{self, Key};
use super::support::process::free_port;
use super::support::token::{CLIENT_ID, ISSUER};

/// Path of a sign-in.
pub const SIGN_IN: &str = "/api/v1/auth/oauth/idp";
/// Path of a refresh.
pub const REFRESH: &str = "/api/v1/auth/refresh";
/// Concurrent requests of this program.
const AT_ONCE: usize = 32;

/// A process, killed when it is dropped.
pub struct Running(Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let started = command.stdin(Stdio::null()).spawn();
        Self(started.unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display())))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes and files that the service needs.
pub struct Setting {
    /// For temporary files.
    pub folder: PathBuf,
    pub binary: PathBuf,
    pub key: Key,
    pub provider: Running,
    pub provider_url: String,
    postgres: Postgres,
    port: u16,
}

impl Setting {
    pub fn start(binary: PathBuf) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("performance");
        fs::create_dir_all(&folder).expect("the folder can be written");
        let port = free_port();
        // PostgreSQL's defaults, where the development server's settings differ. TCP, as in a
        // deployment.
        let port_text = port.to_string();
        let settings = [
            ("listen_addresses", "127.0.0.1"),
            ("port", &port_text),
            ("shared_buffers", "128MB"),
            ("jit", "on"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let options = Options {
            settings: settings.into(),
            ..Options::new(&folder)
        };
        let postgres = Postgres::start(&options).expect("PostgreSQL starts");
        let key = Key::generate();
        let provider_port = free_port();
        let provider = stand_in::start("provider", provider_port, &key.jwks());
        let provider_url = format!("http://127.0.0.1:{provider_port}");
        Self {
            folder,
            binary,
            key,
            provider,
            provider_url,
            postgres,
            port,
        }
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://{ROLE}@127.0.0.1:{}/{database}?sslmode=disable",
            self.port
        )
    }

    /// The id of PostgreSQL's main process.
    pub fn postmaster(&self) -> u32 {
        self.postgres.pid()
    }

    /// `pgbench`, beside the `psql` of this server or in PATH.
    pub fn pgbench(&self, database: &str) -> Command {
        let psql = self.postgres.psql(database);
        let beside = Path::new(psql.get_program()).with_file_name("pgbench");
        let mut command = Command::new(if beside.is_file() {
            beside
        } else {
            "pgbench".into()
        });
        command
            .args(["-h", "127.0.0.1", "-U", ROLE, "-p"])
            .arg(self.port.to_string())
            .arg(database);
        command
    }

    pub async fn connect(&self, database: &str) -> PgConnection {
        let options: PgConnectOptions = self.url(database).parse().expect("it is a URL");
        options
            .connect()
            .await
            .expect("PostgreSQL takes connections")
    }

    /// Runs statements, each by itself.
    pub async fn execute(&self, database: &str, statements: &[&str]) {
        let mut connection = self.connect(database).await;
        for statement in statements {
            let done = connection
                .execute(AssertSqlSafe((*statement).to_owned()))
                .await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// The number that a query returns.
    pub async fn number(&self, database: &str, sql: &'static str) -> f64 {
        let mut connection = self.connect(database).await;
        let sql = AssertSqlSafe(format!("SELECT ({sql})::float8"));
        sqlx::query_scalar(sql)
            .fetch_one(&mut connection)
            .await
            .expect("it answers")
    }

    /// Bytes on disk of all tables and indexes.
    pub async fn size(&self, database: &str) -> f64 {
        self.execute(database, &["CHECKPOINT"]).await;
        let all = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class
                   WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
        self.number(database, all).await
    }

    /// Makes a database anew, as a copy of another or empty.
    pub async fn create(&self, database: &str, template: &str) {
        let [drop, create] = [
            format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"),
            format!("CREATE DATABASE {database} TEMPLATE {template} STRATEGY file_copy"),
        ];
        self.execute("postgres", &[&drop, &create]).await;
    }

    /// Makes a migrated database of that many users, from `u0` on. Each has an identity and a
    /// session, was seen today, and matches the provider's claims.
    pub async fn seed(&self, database: &str, users: u32) {
        self.create(database, "template0").await;
        let migrated = self.command(database, "tokeninfo").arg("migrate").status();
        assert!(migrated.expect("the binary runs").success(), "it migrates");
        let seed = include_str!("seed.sql").replace("$users", &users.to_string());
        self.execute(database, &[&seed, "VACUUM (ANALYZE)", "CHECKPOINT"])
            .await;
    }

    fn command(&self, database: &str, verify: &str) -> Command {
        let mut command = Command::new(&self.binary);
        let [information, keys] =
            ["tokeninfo", "jwks"].map(|path| format!("{}/{path}", self.provider_url));
        let (endpoint, address) = if verify == "jwks" {
            ("IDP_JWKS_URL", keys)
        } else {
            ("IDP_TOKENINFO_URL", information)
        };
        let log = File::create(self.folder.join("service.log")).expect("the folder can be written");
        command.env_clear().current_dir(&self.folder).stdout(Stdio::null()).stderr(log).envs([
            ("ROCKET_PROFILE", "release"),
            ("ROCKET_PUBLIC_URL", "http://127.0.0.1:8000"),
            ("ROCKET_SECRET_KEY", "a secret key that only benchmarks use"),
            // The limits count requests, but are too high to reject any.
            (
                "ROCKET_RATE_LIMIT",
                "{sign_in_per_minute=1000000, refresh_per_minute=1000000, session_per_minute=1000000, \
                 staff_pages_per_minute=1000000}",
            ),
            ("DATABASE_URL", &self.url(database)),
            ("IDP_CLIENT_ID", CLIENT_ID),
            ("IDP_CLIENT_SECRET", "nobody asks for it"),
            ("IDP_ISSUERS", ISSUER),
            ("IDP_VERIFY", verify),
            ("IDP_AUTHORIZATION_URL", &self.provider_url),
            ("IDP_TOKEN_URL", &self.provider_url),
            (endpoint, &address),
        ]);
        command
    }

    /// Starts the service and waits until it is ready.
    pub async fn service(&self, database: &str, verify: &str) -> Service {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let client = reqwest::Client::new();
        let began = Instant::now();
        let process = Running::start(
            self.command(database, verify)
                .env("ROCKET_PORT", port.to_string()),
        );
        let ready = async || {
            let answer = client.get(format!("{url}/readyz")).send().await;
            answer.is_ok_and(|answer| answer.status().is_success())
        };
        while !ready().await {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "not ready: {}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Service {
            process,
            url,
            cold_start: began.elapsed(),
        }
    }

    /// The service's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("service.log")).unwrap_or_default()
    }

    /// Writes lines for a load to a file.
    pub fn lines(&self, name: &str, lines: impl IntoIterator<Item = String>) -> PathBuf {
        let path = self.folder.join(name);
        let text: String = lines
            .into_iter()
            .flat_map(|line| [line, "\n".to_owned()])
            .collect();
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// Bodies of sign-ins.
    pub fn sign_ins(&self, users: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
        users.map(|user| format!(r#"{{"id_token":"{}"}}"#, self.key.mint(&user)))
    }

    /// Cookies of that many members of staff, each with a session.
    pub async fn staff(&self, database: &str, number: usize) -> Vec<String> {
        let mut connection = self.connect(database).await;
        let mut cookies = Vec::new();
        for member in 0..number {
            let token = OpaqueToken::generate();
            let session = "WITH member AS (
                    INSERT INTO staff (id, email, role) VALUES (gen_random_uuid(), $1, 'admin') RETURNING id
                )
                INSERT INTO staff_sessions (hash, staff_id) SELECT $2, id FROM member";
            let session = sqlx::query(session)
                .bind(format!("staff{member}@example.test"))
                .bind(&token.hash[..]);
            session
                .execute(&mut connection)
                .await
                .expect("they are new");
            cookies.push(format!(
                "{}={}",
                vestibule::admin::pages::guard::COOKIE,
                token.text.expose()
            ));
        }
        cookies
    }
}

/// The service.
pub struct Service {
    pub process: Running,
    pub url: String,
    /// From its start until it was ready.
    pub cold_start: Duration,
}

impl Service {
    /// Posts bodies, some at once, and collects the responses in any order.
    pub async fn post_all(&self, path: &str, bodies: Vec<String>) -> Vec<Value> {
        let client = reqwest::Client::new();
        let url = format!("{}{path}", self.url);
        let mut answers = Vec::new();
        let mut under_way = JoinSet::new();
        for body in bodies {
            if under_way.len() == AT_ONCE {
                answers.extend(under_way.join_next().await);
            }
            let request = client
                .post(&url)
                .header("Content-Type", "application/json")
                .body(body);
            under_way.spawn(async move {
                let text = request
                    .send()
                    .await
                    .expect("it answers")
                    .text()
                    .await
                    .expect("it answers in whole");
                serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{text}"))
            });
        }
        answers.extend(under_way.join_all().await.into_iter().map(Ok));
        answers
            .into_iter()
            .map(|answer| answer.expect("no panic"))
            .collect()
    }
}

/// The body of the next refresh after a response.
pub fn refresh(answer: &Value) -> String {
    let token = answer["refresh_token"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"));
    format!(r#"{{"refresh_token":"{token}"}}"#)
}
