//! One PostgreSQL for the test binary, one database for each test.
//!
//! Each test's database is a copy of a template that was migrated once. If there is room, the
//! server's files are in memory, and are deleted with the server. On a disk they stay between runs,
//! so that a start takes a fraction of a second.

use std::mem;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, FromRow};
use tokio::sync::OnceCell;
use vestibule::database::migrations;
use vestibule::dev::postgres::{Options, Postgres};

use super::process::until;

const TEMPLATE: &str = "vestibule_template";
/// Free space in bytes that the largest tests need in a file system in memory.
const ROOM: u64 = 8 << 30;
static CLUSTER: OnceCell<Postgres> = OnceCell::const_new();
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The test binary's server.
pub async fn cluster() -> &'static Postgres {
    CLUSTER.get_or_init(start).await
}

async fn start() -> Postgres {
    let root = Root::choose();
    let options = Options {
        durable: false,
        max_connections: 400,
        ..Options::new(&root.folder)
    };
    let postgres = Postgres::start(&options).expect("PostgreSQL starts");
    root.remove_with_this_program(&postgres);
    let mut admin = connect(&postgres, "postgres").await;
    let leftovers: Vec<String> = sqlx::query_scalar(
        "SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%' OR datname = $1",
    )
    .bind(TEMPLATE)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    for name in leftovers {
        execute(&mut admin, format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }
    execute(&mut admin, format!("CREATE DATABASE {TEMPLATE}")).await;
    let mut template = connect(&postgres, TEMPLATE).await;
    migrations::apply(&mut template)
        .await
        .expect("the migrations apply");
    template.close().await.unwrap();
    postgres
}

/// The folder of the server.
struct Root {
    folder: PathBuf,
    in_memory: bool,
}

impl Root {
    /// Chooses a folder in memory if there is room. A database has 300 files, and on a disk most of
    /// a test's time goes into creating and deleting them.
    fn choose() -> Self {
        let on_disk = Path::new(concat!(
            env!("CARGO_TARGET_TMPDIR"),
            "/",
            env!("CARGO_CRATE_NAME")
        ));
        let memory = Path::new("/dev/shm");
        if rustix::fs::statvfs(memory).is_ok_and(|it| it.f_bavail * it.f_frsize >= ROOM) {
            // The previous run's folder may still be in use.
            Self {
                folder: memory.join(format!("vestibule-tests-{}", std::process::id())),
                in_memory: true,
            }
        } else {
            Self {
                folder: on_disk.into(),
                in_memory: false,
            }
        }
    }

    /// Starts a shell that waits for the end of this program, however it ends, and of the server,
    /// and then removes the folder in memory.
    fn remove_with_this_program(&self, postgres: &Postgres) {
        if !self.in_memory {
            return;
        }
        let shell = Command::new("/bin/sh")
            .args([
                "-c",
                r#"read -r _; while [ -e postmaster.pid ]; do sleep 0.1; done; rm -rf "$0""#,
            ])
            .arg(&self.folder)
            .current_dir(postgres.data_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal ends all programs of a process group.
            .process_group(0)
            .spawn()
            .expect("a shell runs");
        // The pipe to the shell closes when this program ends.
        mem::forget(shell);
    }
}

async fn connect(postgres: &Postgres, database: &str) -> PgConnection {
    let options: PgConnectOptions = postgres.url(database).parse().unwrap();
    options.connect().await.unwrap()
}

async fn execute(connection: &mut PgConnection, sql: String) {
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// A row of a query, as a tuple.
pub trait Row: for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<T: for<'r> FromRow<'r, PgRow> + Send + Unpin> Row for T {}

/// A test's own database, dropped with this value.
pub struct Database {
    /// Its URL.
    pub url: String,
    /// The test's own connections, apart from the service's.
    pub pool: PgPool,
    /// The same connections, for functions of the service.
    pub service: vestibule::database::Database,
    name: String,
}

impl Database {
    /// A migrated, empty database.
    pub async fn create() -> Self {
        Self::from_template(TEMPLATE).await
    }

    /// A database without a schema.
    pub async fn bare() -> Self {
        Self::from_template("template0").await
    }

    /// A database without a schema, with those options of `CREATE DATABASE`.
    pub async fn of_locale(options: &str) -> Self {
        Self::from_template(&format!("template0 {options}")).await
    }

    async fn from_template(template: &str) -> Self {
        let postgres = cluster().await;
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut admin = connect(postgres, "postgres").await;
        execute(
            &mut admin,
            format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"),
        )
        .await;
        admin.close().await.unwrap();
        let url = postgres.url(&name);
        let pool = PgPoolOptions::new()
            .max_connections(4)
            .connect_lazy(&url)
            .unwrap();
        Self {
            url,
            service: pool.clone().into(),
            pool,
            name,
        }
    }

    /// A placeholder for a database that was handed over.
    pub fn gone() -> Self {
        let pool = PgPoolOptions::new()
            .connect_lazy("postgres://nowhere.invalid")
            .unwrap();
        Self {
            url: String::new(),
            service: pool.clone().into(),
            pool,
            name: String::new(),
        }
    }

    /// The number of connections that wait for a lock, with a statement that this regular
    /// expression matches.
    pub async fn waiting(&self, statement: &str) -> i64 {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ $1";
        value!(&self.pool, waiting, statement)
    }

    /// Waits until that many connections wait for a lock with such a statement.
    pub async fn until_waiting(&self, count: i64, statement: &str) {
        let what = format!("{count} wait for a lock: {statement}");
        until(&what, async || self.waiting(statement).await == count).await;
    }

    pub async fn run(&self, sql: &'static str) {
        sqlx::query(sql).execute(&self.pool).await.unwrap();
    }

    /// The single row of a query.
    pub async fn row<T: Row>(&self, sql: &'static str) -> T {
        sqlx::query_as(sql).fetch_one(&self.pool).await.unwrap()
    }

    /// All rows of a query.
    pub async fn all<T: Row>(&self, sql: &'static str) -> Vec<T> {
        sqlx::query_as(sql).fetch_all(&self.pool).await.unwrap()
    }

    /// The single value of a query.
    pub async fn value<T>(&self, sql: &'static str) -> T
    where
        (T,): Row,
    {
        self.row::<(T,)>(sql).await.0
    }

    /// The values of a query's single column.
    pub async fn values<T>(&self, sql: &'static str) -> Vec<T>
    where
        (T,): Row,
    {
        self.all::<(T,)>(sql)
            .await
            .into_iter()
            .map(|(value,)| value)
            .collect()
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        self.value(sql).await
    }

    /// Waits until a query returns that number.
    pub async fn until(&self, sql: &'static str, count: i64) {
        until(&format!("{count} is the answer to {sql}"), async || {
            self.count(sql).await == count
        })
        .await;
    }

    /// Waits until a statement waits for a lock.
    pub async fn until_blocked(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        self.until(waiting, 1).await;
    }

    /// Makes each statement fail that changes more than that many rows of a table.
    pub async fn limit_changes(&self, table: &str, rows: usize) {
        let limit = format!(
            "CREATE FUNCTION limit_changes() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF (SELECT count(*) FROM changed) > {rows} THEN RAISE EXCEPTION 'more than {rows} rows'; END IF;
                 RETURN NULL;
             END $$;
             CREATE TRIGGER limit_changes AFTER UPDATE ON {table} REFERENCING NEW TABLE AS changed
             FOR EACH STATEMENT EXECUTE FUNCTION limit_changes()"
        );
        self.pool.execute(AssertSqlSafe(limit)).await.unwrap();
    }

    /// A pool of one connection on which `now()` returns that time.
    pub async fn at(&self, now: &str) -> PgPool {
        let clock = "CREATE SCHEMA IF NOT EXISTS moment;
                     CREATE OR REPLACE FUNCTION moment.now() RETURNS timestamptz LANGUAGE sql STABLE
                     AS $$ SELECT current_setting('moment.now')::timestamptz $$";
        self.pool.execute(clock).await.unwrap();
        let options = PgConnectOptions::from_str(&self.url).unwrap();
        let options = options.options([
            ("search_path", "moment,pg_catalog,public"),
            ("moment.now", now),
        ]);
        PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await
            .unwrap()
    }

    /// A pool of one connection on which `now()` is that many hours later.
    pub async fn in_hours(&self, hours: i32) -> PgPool {
        let then = "SELECT to_char(now() AT TIME ZONE 'UTC' + $1 * interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
        let then: String = value!(&self.pool, then, hours);
        self.at(&then).await
    }

    /// Waits out the last minute of an hour, so that the test stays within one hour and one day.
    pub async fn within_an_hour(&self) {
        let ending = "SELECT count(*) WHERE extract(minute FROM now()) = 59";
        until("the next hour begins", async || {
            self.count(ending).await == 0
        })
        .await;
    }

    /// All rows of users, identities, sessions and events, without events of the `ignored` kinds,
    /// as text.
    pub async fn everything(&self, ignored: &[&str]) -> String {
        sqlx::query_scalar(
            "SELECT concat_ws('|', (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM users t),
                                   (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM identities t),
                                   (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM sessions t),
                                   (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM events t
                                    WHERE kind <> ALL ($1)))",
        )
        .bind(ignored)
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Numbers of users, identities and sessions, which a refusal must not change.
    pub async fn rows(&self) -> [usize; 3] {
        let row: (i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM identities), (SELECT count(*) FROM sessions)",
        )
        .fetch_one(&self.pool)
        .await
        .unwrap();
        <[i64; 3]>::from(row).map(|count| count.try_into().unwrap())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        if name.is_empty() {
            return;
        }
        // A runtime of its own, since the test's may be shutting down.
        let dropped = thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(async {
                    let mut admin = connect(CLUSTER.get().unwrap(), "postgres").await;
                    execute(&mut admin, format!("DROP DATABASE {name} WITH (FORCE)")).await;
                });
        });
        dropped.join().expect("the test's database is dropped");
    }
}
