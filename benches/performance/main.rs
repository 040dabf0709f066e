//! Costs of a sign-in, a refresh and other requests, and of their parts alone: tables and plots for
//! `docs/performance.md`.
//!
//! `cargo bench --bench performance -- --rounds 3 --seconds 6 --growth 1000,100000,1000000`;
//! without `--bench`, which `cargo bench` adds, it does nothing. Linux only. It needs `wrk`,
//! PostgreSQL's programs including `pgbench`, and an otherwise idle machine.

#[cfg(not(debug_assertions))]
compile_error!("it stands on the development parts: cargo bench --bench performance");

#[allow(dead_code, unused_imports, reason = "the tests use the rest of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

mod load;
mod machine;
mod parts;
mod plot;
mod report;
mod setting;
mod stand_in;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::time::Duration;

use clap::Parser;

use self::load::{Figures, Lines, Load};
use self::report::{Report, key};
use self::setting::{REFRESH, SIGN_IN, Service, Setting, refresh};

/// Users in the database before a measurement.
const USERS: u32 = 5_000;
/// Distinct tokens of returning users.
const RETURNING: u32 = 60_000;
/// Tokens of new users, enough for a round.
const NEW: u32 = 100_000;
/// Members of staff who load pages at the same time.
const STAFF: usize = 32;
/// Sessions whose refreshes are measured on disk, and the number of refreshes of each.
const WEIGHED: u32 = 1_000;
const REFRESHES: u32 = 20;
/// Spreads returning users over all users: it has no factor in common with the numbers of users.
const STRIDE: u32 = 7_919;

#[derive(Parser)]
struct Arguments {
    /// Measurements of each kind; medians are reported
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each
    #[arg(long, default_value_t = 6)]
    seconds: u32,
    /// Numbers of users to sign in among; without a number, growth is not measured
    #[arg(long, value_delimiter = ',', num_args = 0.., default_values_t = [1_000, 100_000, 1_000_000])]
    growth: Vec<u32>,
    /// An existing release binary, instead of a new build
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The folder of `performance.md`
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/docs"))]
    docs: PathBuf,
    #[arg(long, hide = true)]
    stand_in: Option<String>,
    #[arg(long, hide = true, default_value_t)]
    port: u16,
    #[arg(long, hide = true, default_value_t)]
    jwks: String,
    /// The flag that `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    // `cargo test --benches` and `--all-targets` run this, too, without wanting a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads start");
    runtime.block_on(async {
        match &arguments.stand_in {
            Some(name) => stand_in::run(name, arguments.port, &arguments.jwks).await,
            None => measure(arguments).await,
        }
    });
}

async fn measure(arguments: Arguments) {
    if Command::new("wrk")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        eprintln!("`wrk` is missing: apt-get install wrk");
        exit(1);
    }
    let setting = Setting::start(arguments.binary.unwrap_or_else(build));
    let mut report = Report::new(arguments.rounds, arguments.seconds);
    let returning = returning(&setting, USERS);
    let new = setting.lines(
        "new",
        setting.sign_ins((0..NEW).map(|number| format!("n{number}"))),
    );
    setting.seed("seeded", USERS).await;
    for _ in 0..arguments.rounds {
        round(&setting, &mut report, [&returning, &new]).await;
        for (name, figures) in parts::measure(&setting, arguments.seconds).await {
            report.add(&name, figures);
        }
    }
    weigh_refreshes(&setting, &mut report).await;
    for users in arguments.growth {
        grow(&setting, &mut report, users).await;
    }
    report.write(&setting, &arguments.docs).await;
}

/// Builds the release binary and copies it, since this program was built with another binary of
/// that name.
fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--bin", "vestibule"]);
    cargo
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "the release binary is built");
    let messages = String::from_utf8_lossy(&output.stdout);
    let binary = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vestibule-release");
    std::fs::copy(binary.expect("cargo tells where it is"), &kept)
        .expect("the folder can be written");
    kept
}

/// Sign-ins of returning users, out of that many.
fn returning(setting: &Setting, users: u32) -> PathBuf {
    let users = (0..RETURNING).map(|number| format!("u{}", number * STRIDE % users));
    setting.lines("returning", setting.sign_ins(users))
}

fn load<'a>(
    service: &Service,
    path: &str,
    lines: (Lines, &'a Path),
    marker: &'static str,
) -> Load<'a> {
    Load {
        url: format!("{}{path}", service.url),
        lines,
        marker,
        pid: service.process.pid(),
    }
}

/// Every request once, on a fresh database.
async fn round(setting: &Setting, report: &mut Report, [returning, new]: [&Path; 2]) {
    let seconds = report.seconds;
    setting.create("round", "seeded").await;
    let service = setting.service("round", "tokeninfo").await;
    let mut whole = Figures::from([("cold_start_s", service.cold_start.as_secs_f64())]);
    // This warms it up, too.
    let everybody = setting
        .sign_ins((0..USERS).map(|user| format!("u{user}")))
        .collect();
    let credentials = service.post_all(SIGN_IN, everybody).await;
    let refreshes = setting.lines("refreshes", credentials.iter().map(refresh));
    let bearer = |credential: &serde_json::Value| {
        Some(format!("Bearer {}", credential["access_token"].as_str()?))
    };
    let bearers = setting.lines("bearers", credentials.iter().filter_map(bearer));
    let cookies = setting.lines("cookies", setting.staff("round", STAFF).await);

    let sign_in = |lines| load(&service, SIGN_IN, lines, r#""access_token":""#);
    let back = sign_in((Lines::Bodies, returning));
    let first = sign_in((Lines::BodiesOnce, new));
    let figures = weigh(
        setting,
        "SELECT count(*) FROM sessions",
        back.run(setting, 32, seconds),
    )
    .await;
    report.add(&key("returning", "tokeninfo", 32), figures);
    let figures = weigh(
        setting,
        "SELECT count(*) FROM users",
        first.run(setting, 32, seconds),
    )
    .await;
    report.add(&key("new", "tokeninfo", 32), figures);
    for connections in [1, 128] {
        let figures = back.run(setting, connections, seconds).await;
        report.add(&key("returning", "tokeninfo", connections), figures);
    }
    let again = load(
        &service,
        REFRESH,
        (Lines::Refreshes, &refreshes),
        r#""refresh_token":""#,
    );
    for connections in [32, 1, 128] {
        report.add(
            &key("refresh", "", connections),
            again.run(setting, connections, seconds).await,
        );
    }
    let me = load(
        &service,
        "/api/v1/me",
        (Lines::Header("Authorization"), &bearers),
        "@example.test",
    );
    report.add(&key("me", "", 32), me.run(setting, 32, seconds).await);
    let staff = load(
        &service,
        "/admin/users",
        (Lines::Header("Cookie"), &cookies),
        "@example.test",
    );
    report.add(&key("staff", "", 32), staff.run(setting, 32, seconds).await);
    let (rss, pss) = machine::memory(service.process.pid());
    let size = std::fs::metadata(&setting.binary).map_or(0, |binary| binary.len() / 1024);
    let size = f64::from(u32::try_from(size).unwrap_or(0)) / 1024.0;
    whole.extend([("rss_mib", rss), ("pss_mib", pss), ("binary_mib", size)]);
    report.add("whole", whole);
    drop(service);

    setting.create("round", "seeded").await;
    let service = setting.service("round", "jwks").await;
    let some = setting
        .sign_ins((0..USERS / 5).map(|user| format!("u{user}")))
        .collect();
    service.post_all(SIGN_IN, some).await;
    let back = load(
        &service,
        SIGN_IN,
        (Lines::Bodies, returning),
        r#""access_token":""#,
    );
    report.add(
        &key("returning", "jwks", 32),
        back.run(setting, 32, seconds).await,
    );
}

/// Adds the bytes on disk per written row, including everything that was written with it, to the
/// figures of a load.
async fn weigh(
    setting: &Setting,
    rows: &'static str,
    load: impl Future<Output = Figures>,
) -> Figures {
    let size = setting.size("round").await;
    let count = setting.number("round", rows).await;
    let mut figures = load.await;
    let written = setting.number("round", rows).await - count;
    figures.insert("bytes", (setting.size("round").await - size) / written);
    figures
}

/// Measures the bytes that refreshes leave on disk after `VACUUM`.
async fn weigh_refreshes(setting: &Setting, report: &mut Report) {
    setting.create("round", "seeded").await;
    let service = setting.service("round", "tokeninfo").await;
    let some = setting
        .sign_ins((0..WEIGHED).map(|user| format!("u{user}")))
        .collect();
    let mut answers = service.post_all(SIGN_IN, some).await;
    let mut sizes = Vec::new();
    for pass in 1..=REFRESHES {
        answers = service
            .post_all(REFRESH, answers.iter().map(refresh).collect())
            .await;
        // After the first pass, each page has the room that later passes reuse.
        if pass == 1 || pass == REFRESHES {
            setting.execute("round", &["VACUUM"]).await;
            sizes.push(setting.size("round").await);
        }
    }
    drop(service);
    // PostgreSQL's connections report their counts when they end.
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = 'round' AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while setting.number("round", open).await > 0.0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let share = "SELECT 100.0 * n_tup_hot_upd / n_tup_upd FROM pg_stat_user_tables WHERE relname = 'sessions'";
    let hot = setting.number("round", share).await;
    let bytes = (sizes[1] - sizes[0]) / f64::from(WEIGHED * (REFRESHES - 1));
    report.add(
        "refreshes",
        BTreeMap::from([("bytes", bytes), ("hot_percent", hot)]),
    );
}

/// Sign-ins among so many users.
async fn grow(setting: &Setting, report: &mut Report, users: u32) {
    setting.seed("growth", users).await;
    let lines = returning(setting, users);
    let service = setting.service("growth", "tokeninfo").await;
    let load = load(
        &service,
        SIGN_IN,
        (Lines::Bodies, &lines),
        r#""access_token":""#,
    );
    load.run(setting, 32, report.seconds).await;
    for _ in 0..report.rounds {
        report.add(
            &format!("growth {users}"),
            load.run(setting, 32, report.seconds).await,
        );
    }
    drop(service);
    setting
        .execute("postgres", &["DROP DATABASE growth WITH (FORCE)"])
        .await;
}
