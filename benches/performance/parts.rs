//! The parts of a sign-in, each measured alone: the lower bound for any service with the same
//! parts.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::load::{Figures, Lines, Load};
use super::machine::{cpu, own_cpu};
use super::setting::Setting;
use super::stand_in;
use super::support::process::{eventually, free_port};

/// Concurrent connections, tasks and clients of each measurement.
const AT_ONCE: u32 = 32;
/// Signatures of a measurement.
const SIGNATURES: u32 = 20_000;

/// The minimal schema of a service with users and sessions, and a table whose rows have a number as
/// key.
const SCHEMA: [&str; 7] = [
    "CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email text NOT NULL UNIQUE, name text,
         picture text, created timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE identities (provider text NOT NULL, subject text NOT NULL, user_id uuid NOT NULL REFERENCES users,
         PRIMARY KEY (provider, subject))",
    "CREATE TABLE sessions (token_hash bytea PRIMARY KEY, user_id uuid NOT NULL REFERENCES users,
         created timestamptz NOT NULL DEFAULT now(), expires timestamptz NOT NULL);
     CREATE INDEX ON sessions (user_id);
     CREATE INDEX ON identities (user_id)",
    "CREATE TABLE refreshed (id integer PRIMARY KEY, token_hash bytea NOT NULL, expires timestamptz NOT NULL)
         WITH (fillfactor = 90)",
    "INSERT INTO users (email, name) SELECT 'u' || n || '@example.test', 'Person ' || n FROM generate_series(0, 4999) n;
     INSERT INTO identities (provider, subject, user_id) SELECT 'idp', split_part(email, '@', 1), id FROM users",
    "INSERT INTO refreshed SELECT n, sha256(n::text::bytea), now() FROM generate_series(0, 4999) n",
    "VACUUM (ANALYZE)",
];
/// Names and statements: insert a session by the key of its identity, insert a user with an
/// identity and a session, and update a row by its key.
const STATEMENTS: [(&str, &str); 3] = [
    (
        "insert",
        "INSERT INTO sessions (token_hash, user_id, expires) SELECT sha256(('s' || :r)::bytea), user_id,
         now() + interval '30 days' FROM identities WHERE provider = 'idp' AND subject = 'u' || :n",
    ),
    (
        "insert new",
        "WITH u AS (INSERT INTO users (email, name, picture) VALUES ('n' || :r || '@example.test', 'Person',
         'https://example.test/photo') RETURNING id), i AS (INSERT INTO identities (provider, subject, user_id)
         SELECT 'idp', 'n' || :r, id FROM u) INSERT INTO sessions (token_hash, user_id, expires)
         SELECT sha256(('s' || :r)::bytea), id, now() + interval '30 days' FROM u",
    ),
    (
        "update",
        "UPDATE refreshed SET token_hash = sha256(('s' || :r)::bytea), expires = now() + interval '30 days' WHERE id = :n",
    ),
];

/// Measures all parts.
pub async fn measure(setting: &Setting, seconds: u32) -> Vec<(String, Figures)> {
    let mut parts = Vec::new();
    setting.create("parts", "template0").await;
    setting.execute("parts", &SCHEMA).await;
    for (name, statement) in STATEMENTS {
        parts.push((
            format!("part {name}"),
            pgbench(setting, statement, seconds).await,
        ));
    }
    parts.push(("part rocket".into(), rocket(setting, seconds).await));
    parts.push(("part provider".into(), provider(setting, seconds).await));
    let before = own_cpu();
    for _ in 0..SIGNATURES {
        black_box(setting.key.sign("a header and claims"));
    }
    let spent = (own_cpu() - before) * 1000.0 / f64::from(SIGNATURES);
    parts.push(("part signature".into(), BTreeMap::from([("cpu_ms", spent)])));
    parts
}

async fn pgbench(setting: &Setting, statement: &str, seconds: u32) -> Figures {
    let script = setting.folder.join("pgbench.sql");
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    let text =
        format!("\\set r random(1, 9000000000000000000)\n\\set n random(0, 4999)\n{line};\n");
    fs::write(&script, text).expect("the folder can be written");
    setting.execute("parts", &["CHECKPOINT"]).await;
    let before = cpu(setting.postmaster());
    let mut pgbench = setting.pgbench("parts");
    pgbench
        .args(["-n", "-M", "prepared", "-j", "1", "-c"])
        .arg(AT_ONCE.to_string())
        .arg("-f")
        .arg(script);
    let output = pgbench
        .arg("-T")
        .arg(seconds.to_string())
        .output()
        .expect("pgbench is there");
    let spent = cpu(setting.postmaster()) - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |name: &str| -> Option<f64> {
        let (_, rest) = text.split_once(name)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let told = number("actually processed: ").zip(number("tps = "));
    let (done, rps) = told
        .unwrap_or_else(|| panic!("pgbench: {text}{}", String::from_utf8_lossy(&output.stderr)));
    BTreeMap::from([("rps", rps), ("cpu_ms", spent * 1000.0 / done)])
}

/// A POST of a sign-in's body to a route that does nothing with it.
async fn rocket(setting: &Setting, seconds: u32) -> Figures {
    let port = free_port();
    let process = stand_in::start("rocket", port, "");
    let url = format!("http://127.0.0.1:{port}/trivial");
    let body = setting.sign_ins(["u0".to_owned()].into_iter());
    let file = setting.lines("trivial", body);
    let client = reqwest::Client::new();
    eventually("Rocket answers", async || {
        client.get(&url).send().await.ok()
    })
    .await;
    let load = Load {
        url,
        lines: (Lines::Bodies, &file),
        marker: "members",
        pid: process.pid(),
    };
    let figures = load.run(setting, AT_ONCE, seconds).await;
    BTreeMap::from([("rps", figures["rps"]), ("cpu_ms", figures["service_ms"])])
}

/// A call to the provider with the service's HTTP client, and nothing else.
async fn provider(setting: &Setting, seconds: u32) -> Figures {
    let client = reqwest::Client::new();
    let url = format!(
        "{}/tokeninfo?id_token={}",
        setting.provider_url,
        setting.key.mint("u0")
    );
    let before = own_cpu();
    let began = Instant::now();
    let end = began + Duration::from_secs(seconds.into());
    let mut callers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let client = client.clone();
        let url = url.clone();
        callers.spawn(async move {
            let mut calls = 0.0;
            while Instant::now() < end {
                let answer = client
                    .get(&url)
                    .send()
                    .await
                    .expect("it answers")
                    .bytes()
                    .await;
                black_box(answer.expect("it answers in whole"));
                calls += 1.0;
            }
            calls
        });
    }
    let calls: f64 = callers.join_all().await.iter().sum();
    let took = began.elapsed().as_secs_f64();
    let spent = own_cpu() - before;
    BTreeMap::from([("rps", calls / took), ("cpu_ms", spent * 1000.0 / calls)])
}
