//! Compares `vestibule import` with `psql`'s `\copy`, of the same file of made-up users on the same
//! server. Figures are medians of three runs, each into a new database. It fails if an import of
//! users is slower than half of `\copy` into a table with the columns, indexes and constraints of
//! `users`. With identities, an import fills two tables, with twice the indexes and a reference,
//! where `\copy` fills one: it prints these figures, without a limit.
//!
//! `cargo bench --bench import`; without `--bench`, which `cargo bench` adds, it does nothing.

#[cfg(not(debug_assertions))]
compile_error!("it stands on the development parts: cargo bench --bench import");

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Parser;
use vestibule::accounts::seed;
use vestibule::app;
use vestibule::config::{self, Maintenance};
use vestibule::dev::postgres::{Options, Postgres};

const RUNS: usize = 3;
const PEOPLE: &str = r#"SELECT u.id, u.email, u.email_verified, u.name, u.picture,
    to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
    u.disabled_at IS NOT NULL AS disabled, i.provider, i.subject
    FROM users u JOIN LATERAL (SELECT * FROM identities i WHERE i.user_id = u.id ORDER BY i.id LIMIT 1) AS i ON true
    ORDER BY u.id"#;
const WITHOUT_IDENTITIES: &str = r#"SELECT u.id, u.email, u.email_verified, u.name, u.picture,
    to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
    u.disabled_at IS NOT NULL AS disabled FROM users u WHERE u.email IS NOT NULL ORDER BY u.id"#;
/// A table with only the file's columns.
const PLAIN: &str =
    "CREATE TABLE target (id uuid, email text, email_verified boolean, name text, picture text,
    created_at timestamptz, disabled boolean, provider text, subject text)";
/// A table like `users`, with the file's other columns.
const LIKE_USERS: &str = "CREATE TABLE target (LIKE users INCLUDING ALL);
    ALTER TABLE target ADD disabled boolean, ADD provider text, ADD subject text";
/// The same, with the unique constraint of identities.
const LIKE_BOTH: &str = "CREATE TABLE target (LIKE users INCLUDING ALL);
    ALTER TABLE target ADD disabled boolean, ADD provider text, ADD subject text, ADD UNIQUE (provider, subject)";

#[derive(Parser)]
struct Arguments {
    /// People in the file
    #[arg(long, default_value_t = 1_000_000)]
    rows: i32,
    /// The flag that `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

/// A program's run: elapsed seconds, and seconds of processor time of the program and of
/// PostgreSQL.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    own: f64,
    postgres: f64,
}

struct Bench {
    postgres: Postgres,
    rows: i32,
    directory: PathBuf,
}

fn main() {
    // `cargo test --benches` and `--all-targets` run this, too, without wanting a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rows = Arguments::parse().rows;
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("import_bench");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let postgres = Postgres::start(&Options::new(directory.join("postgres"))).unwrap();
    let bench = Bench {
        postgres,
        rows,
        directory,
    };
    let [people, bare] = bench.files();

    println!(
        "{} people with one identity each: {} bytes",
        rows,
        fs::metadata(&people).unwrap().len()
    );
    let plain = bench.copy("\\copy, no index", PLAIN, &people);
    let users = bench.copy("\\copy, indexes of users", LIKE_USERS, &people);
    let both = bench.copy("\\copy, and of identities", LIKE_BOTH, &people);
    let import = bench.import("vestibule import", &people);
    println!(
        "{:.2} of \\copy without an index, {:.2} of that with the indexes of users, {:.2} of that with those of both",
        plain / import,
        users / import,
        both / import
    );
    println!(
        "people without identities: {} bytes",
        fs::metadata(&bare).unwrap().len()
    );
    let bare_users = bench.copy("\\copy, indexes of users", LIKE_USERS, &bare);
    let bare_import = bench.import("vestibule import", &bare);
    println!(
        "{:.2} of \\copy with the indexes of users",
        bare_users / bare_import
    );
    let _ = fs::remove_dir_all(&bench.directory);
    assert!(
        bare_users / bare_import >= 0.5,
        "slower than half of \\copy"
    );
}

impl Bench {
    /// Files of made-up users, with identities and without.
    fn files(&self) -> [PathBuf; 2] {
        self.create("people", None);
        let figment = config::defaults()
            .merge(("public_url", "http://127.0.0.1:8000"))
            .merge(("secret_key", "a secret key that only benches use"))
            .merge(("idp.client_id", "client.example"))
            .merge(("databases.vestibule.url", self.postgres.url("people")));
        let settings = Maintenance::read(figment).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            app::migrate(&settings.figment).await.unwrap();
            let pool = app::database(&settings.figment).await.unwrap();
            seed::add_users(&pool, self.rows, Some(0.7), |_| ())
                .await
                .unwrap();
            // The database becomes a template, which must have no connections.
            pool.close().await;
        });
        let export = |name: &str, query: &str| {
            let path = self.directory.join(name);
            let query = query.replace('\n', " ");
            self.psql(
                "people",
                &format!("\\copy ({query}) TO '{}' CSV HEADER", path.display()),
            );
            path
        };
        let files = [
            export("people.csv", PEOPLE),
            export("bare.csv", WITHOUT_IDENTITIES),
        ];
        // The runs copy the empty schema.
        self.psql("people", "TRUNCATE users, sessions, events CASCADE");
        files
    }

    /// The median of some runs of `\copy`, in seconds.
    fn copy(&self, name: &str, table: &str, file: &Path) -> f64 {
        let header = fs::File::open(file)
            .map(std::io::BufReader::new)
            .map(std::io::BufRead::lines);
        let columns = header.unwrap().next().unwrap().unwrap();
        self.median(name, file, || {
            self.psql("run", table);
            self.psql("run", "CHECKPOINT");
            let mut psql = self.postgres.psql("run");
            psql.arg("-c").arg(format!(
                "\\copy target ({columns}) FROM '{}' CSV HEADER",
                file.display()
            ));
            psql
        })
    }

    /// The median of some runs of the import, in seconds. Then the last file is imported once more,
    /// which changes nothing.
    fn import(&self, name: &str, file: &Path) -> f64 {
        let command = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
            let presets = ["google", "apple", "microsoft", "facebook", "line"];
            let providers = presets
                .map(|name| format!(r#"{name}={{client_id="client.example",preset="{name}"}}"#))
                .join(",");
            command
                .env_clear()
                .current_dir(&self.directory)
                .arg("import")
                .arg(file)
                .envs([
                    ("ROCKET_PROFILE", "release"),
                    ("ROCKET_PUBLIC_URL", "http://127.0.0.1:8000"),
                    ("ROCKET_SECRET_KEY", "a secret key that only benches use"),
                    ("DATABASE_URL", &self.postgres.url("run")),
                    ("IDP_CLIENT_ID", "client.example"),
                    ("ROCKET_PROVIDERS", &format!("{{{providers}}}")),
                ]);
            command
        };
        let median = self.median(name, file, || {
            self.psql("run", "CHECKPOINT");
            command()
        });
        self.psql("run", "CHECKPOINT");
        let again = self.measure(command());
        print("the same again", again, rows(file));
        median
    }

    fn median(&self, name: &str, file: &Path, mut prepared: impl FnMut() -> Command) -> f64 {
        let mut runs: Vec<_> = (0..RUNS)
            .map(|_| {
                self.create("run", Some("people"));
                self.measure(prepared())
            })
            .collect();
        runs.sort_by(|one, other| one.wall.total_cmp(&other.wall));
        print(name, runs[RUNS / 2], rows(file));
        runs[RUNS / 2].wall
    }

    fn measure(&self, mut command: Command) -> Took {
        let postmaster = self.postgres.pid().to_string();
        let own = children_of("self");
        let postgres = children_of(&postmaster);
        let began = Instant::now();
        let output = command.output().unwrap();
        let wall = began.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let own = children_of("self") - own;
        // Waits until the server has reaped the processes of earlier connections.
        self.psql("postgres", "SELECT 1");
        Took {
            wall,
            own,
            postgres: children_of(&postmaster) - postgres,
        }
    }

    fn create(&self, database: &str, template: Option<&str>) {
        let template = template.unwrap_or("template0");
        self.psql(
            "postgres",
            &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"),
        );
        self.psql(
            "postgres",
            &format!("CREATE DATABASE {database} TEMPLATE {template} STRATEGY file_copy"),
        );
    }

    fn psql(&self, database: &str, statement: &str) {
        let output = self
            .postgres
            .psql(database)
            .args(["-c", statement])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "no file has that many rows")]
fn print(name: &str, took: Took, rows: usize) {
    let Took {
        wall,
        own,
        postgres,
    } = took;
    println!(
        "{name:26} {wall:7.2} s, {:7.0} rows/s; processor {own:6.2} s, PostgreSQL's {postgres:6.2} s",
        rows as f64 / wall
    );
}

/// Number of lines below the header. No made-up name contains a line break.
fn rows(file: &Path) -> usize {
    fs::read_to_string(file).unwrap().lines().count() - 1
}

/// Seconds of processor time of a process's ended children, where the system reports it (Linux:
/// proc(5)).
fn children_of(process: &str) -> f64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return f64::NAN;
    };
    let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(13);
    let ticks: f64 = fields
        .by_ref()
        .take(2)
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum();
    ticks / 100.0
}
