//! The figures of a run: medians, tables, plots.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::load::Figures;
use super::machine::processors;
use super::plot::{Lines, bars, lines, number};
use super::setting::Setting;

/// This program writes the part of the page between these.
const MARKERS: [&str; 2] = ["<!-- measured -->\n", "<!-- /measured -->"];
/// The rows of the table of requests: name, kind, means of verification, connections.
const REQUESTS: [(&str, &str, &str, u32); 10] = [
    ("Returning sign-in", "returning", "tokeninfo", 1),
    ("Returning sign-in", "returning", "tokeninfo", 32),
    ("Returning sign-in", "returning", "tokeninfo", 128),
    ("Returning sign-in, `jwks`", "returning", "jwks", 32),
    ("New user", "new", "tokeninfo", 32),
    ("Refresh", "refresh", "", 1),
    ("Refresh", "refresh", "", 32),
    ("Refresh", "refresh", "", 128),
    ("`GET /api/v1/me`", "me", "", 32),
    ("Staff's list of users", "staff", "", 32),
];
/// The rows of the table of parts: name, what it is.
const PARTS: [(&str, &str); 6] = [
    (
        "rocket",
        "A POST to a route of Rocket that does nothing (the server)",
    ),
    ("provider", "A call to the provider by reqwest (the client)"),
    ("signature", "An ES256 signature"),
    (
        "insert",
        "pgbench: a session, by the key of its identity (PostgreSQL)",
    ),
    (
        "insert new",
        "pgbench: a user, an identity and a session (PostgreSQL)",
    ),
    ("update", "pgbench: one row, by its key (PostgreSQL)"),
];
/// Requests whose time in PostgreSQL is compared with a part.
const RATIOS: [(&str, &str, u32, &str); 4] = [
    ("returning", "tokeninfo", 32, "insert"),
    ("returning", "tokeninfo", 128, "insert"),
    ("new", "tokeninfo", 32, "insert new"),
    ("refresh", "", 32, "update"),
];

/// The name of a request's figures.
pub fn key(kind: &str, verify: &str, connections: u32) -> String {
    [kind, verify, &connections.to_string()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// All figures of a run by their names, one for each round.
pub struct Report {
    pub rounds: u32,
    pub seconds: u32,
    all: BTreeMap<String, Vec<Figures>>,
}

impl Report {
    pub fn new(rounds: u32, seconds: u32) -> Self {
        Self {
            rounds,
            seconds,
            all: BTreeMap::new(),
        }
    }

    /// Keeps the figures of a round, and prints them.
    pub fn add(&mut self, name: &str, figures: Figures) {
        let list: Vec<_> = figures
            .iter()
            .map(|(name, value)| format!("{name} {}", number(*value)))
            .collect();
        println!("{name:24} {}", list.join(", "));
        self.all.entry(name.to_owned()).or_default().push(figures);
    }

    /// The median of one figure.
    fn median(&self, name: &str, figure: &str) -> f64 {
        let rounds = self
            .all
            .get(name)
            .unwrap_or_else(|| panic!("{name} was measured"));
        let mut values: Vec<f64> = rounds
            .iter()
            .filter_map(|figures| figures.get(figure).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        }
    }

    /// Writes the figures, the plots and the tables.
    pub async fn write(&self, setting: &Setting, docs: &Path) {
        let folder = docs.join("performance");
        fs::create_dir_all(&folder).expect("the folder can be written");
        let about = about(setting).await;
        let medians: BTreeMap<_, BTreeMap<_, _>> = self
            .all
            .iter()
            .map(|(name, rounds)| {
                (
                    name,
                    rounds[0]
                        .keys()
                        .map(|figure| (figure, self.median(name, figure)))
                        .collect(),
                )
            })
            .collect();
        let figures = json!({
            "about": about, "rounds": self.rounds, "seconds": self.seconds, "medians": medians, "figures": self.all,
        });
        let figures = serde_json::to_string_pretty(&figures).expect("it is JSON") + "\n";
        let growth = self.growth();
        let mut files = vec![
            ("figures.json", figures),
            ("connections.svg", self.plot_connections()),
            ("budget.svg", self.plot_budget()),
        ];
        if !growth.is_empty() {
            files.push(("growth.svg", self.plot_growth(&growth)));
        }
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("the folder can be written");
        }
        let page = docs.join("performance.md");
        let text =
            fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let (head, rest) = text
            .split_once(MARKERS[0])
            .expect("the page has its markers");
        let (_, tail) = rest
            .split_once(MARKERS[1])
            .expect("the page has its markers");
        let [first, last] = MARKERS;
        let tables = self.tables(&about, &growth);
        fs::write(&page, format!("{head}{first}{tables}{last}{tail}"))
            .expect("the page can be written");
        println!("written: {}", page.display());
    }

    /// Numbers of users, and the names of their figures.
    fn growth(&self) -> Vec<(u32, String)> {
        let sizes = self
            .all
            .keys()
            .filter_map(|name| Some((name.strip_prefix("growth ")?.parse().ok()?, name.clone())));
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_unstable();
        sizes
    }

    fn tables(&self, about: &[String], growth: &[(u32, String)]) -> String {
        let mut text = String::new();
        let others = self
            .all
            .values()
            .flatten()
            .filter_map(|figures| figures.get("others_percent"));
        let most = others.copied().fold(0.0, f64::max);
        let _ = write!(
            text,
            "{}. Medians of {} rounds of {} seconds; other programs used up to {most:.0} % of the machine meanwhile.\n\n\
             | request | connections | a second | p50 ms | p99 ms | CPU ms: service | PostgreSQL | provider |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|\n",
            about.join("; "),
            self.rounds,
            self.seconds,
        );
        for (name, kind, verify, connections) in REQUESTS {
            let figures = [
                "rps",
                "p50_ms",
                "p99_ms",
                "service_ms",
                "postgres_ms",
                "provider_ms",
            ];
            let cells =
                figures.map(|figure| number(self.median(&key(kind, verify, connections), figure)));
            let _ = writeln!(text, "| {name} | {connections} | {} |", cells.join(" | "));
        }
        text.push_str(
            "\n![Throughput and p99 by connections](performance/connections.svg)\n\n\
             ![CPU time of a request and of its parts](performance/budget.svg)\n\n\
             | part, alone, 32 at once | a second | CPU ms |\n|---|--:|--:|\n",
        );
        for (part, name) in PARTS {
            let part = format!("part {part}");
            let rps = if part == "part signature" {
                String::new()
            } else {
                number(self.median(&part, "rps"))
            };
            let _ = writeln!(
                text,
                "| {name} | {rps} | {} |",
                number(self.median(&part, "cpu_ms"))
            );
        }
        text.push_str("\n| PostgreSQL's CPU, of pgbench's statement | |\n|---|--:|\n");
        for (kind, verify, connections, part) in RATIOS {
            let ratio = self.median(&key(kind, verify, connections), "postgres_ms")
                / self.median(&format!("part {part}"), "cpu_ms");
            let _ = writeln!(
                text,
                "| {kind}, {connections} connections, of `{part}` | {ratio:.2} × |"
            );
        }
        let _ = write!(
            text,
            "\n| | |\n|---|--:|\n| bytes on disk for each returning sign-in, all tables and indexes | {} |\n\
             | … new user | {} |\n| … refresh, after VACUUM | {} |\n| refreshes that are heap-only updates | {:.1} % |\n\
             | memory after the load: RSS, PSS | {}, {} MiB |\n| cold start on a migrated database | {} s |\n\
             | size of the binary | {} MiB |\n",
            number(self.median(&key("returning", "tokeninfo", 32), "bytes")),
            number(self.median(&key("new", "tokeninfo", 32), "bytes")),
            number(self.median("refreshes", "bytes")),
            self.median("refreshes", "hot_percent"),
            number(self.median("whole", "rss_mib")),
            number(self.median("whole", "pss_mib")),
            number(self.median("whole", "cold_start_s")),
            number(self.median("whole", "binary_mib")),
        );
        if !growth.is_empty() {
            text.push_str(
                "\n| users | returning sign-ins a second | CPU ms: service | PostgreSQL | of that at the fewest |\n\
                 |--:|--:|--:|--:|--:|\n",
            );
            let both =
                |name: &str| self.median(name, "service_ms") + self.median(name, "postgres_ms");
            for (users, name) in growth {
                let cells = ["rps", "service_ms", "postgres_ms"]
                    .map(|figure| number(self.median(name, figure)));
                let ratio = both(name) / both(&growth[0].1);
                let _ = writeln!(
                    text,
                    "| {} | {} | {ratio:.2} × |",
                    number(f64::from(*users)),
                    cells.join(" | ")
                );
            }
            text.push_str(
                "\n![CPU time of a returning sign-in by users](performance/growth.svg)\n",
            );
        }
        text
    }

    fn plot_connections(&self) -> String {
        let connections = [1, 32, 128];
        let panel = |title, figure| {
            let series = |name, kind, verify| {
                (
                    name,
                    connections
                        .map(|number| self.median(&key(kind, verify, number), figure))
                        .to_vec(),
                )
            };
            Lines {
                title,
                categories: connections.map(|number| number.to_string()).to_vec(),
                series: vec![
                    series("returning sign-in", "returning", "tokeninfo"),
                    series("refresh", "refresh", ""),
                ],
            }
        };
        lines(&[
            panel("Requests a second, by connections", "rps"),
            panel("p99 in ms, by connections", "p99_ms"),
        ])
    }

    fn plot_growth(&self, growth: &[(u32, String)]) -> String {
        let series = |name, figure| {
            (
                name,
                growth
                    .iter()
                    .map(|(_, of)| self.median(of, figure))
                    .collect(),
            )
        };
        lines(&[Lines {
            title: "CPU ms of a returning sign-in, by users",
            categories: growth
                .iter()
                .map(|(users, _)| number(f64::from(*users)))
                .collect(),
            series: vec![
                series("service", "service_ms"),
                series("PostgreSQL", "postgres_ms"),
            ],
        }])
    }

    fn plot_budget(&self) -> String {
        // Staff's list costs another order of magnitude.
        let requests = REQUESTS
            .iter()
            .filter(|(_, kind, _, connections)| *connections == 32 && *kind != "staff");
        let mut rows: Vec<_> = requests
            .map(|(name, kind, verify, connections)| {
                let of = |figure| self.median(&key(kind, verify, *connections), figure);
                (
                    name.replace('`', ""),
                    ["service_ms", "postgres_ms", "provider_ms"]
                        .map(of)
                        .to_vec(),
                )
            })
            .collect();
        let part = |name: &str| self.median(&format!("part {name}"), "cpu_ms");
        rows.extend([
            ("alone: a trivial POST".into(), vec![part("rocket")]),
            (
                "alone: a call to the provider".into(),
                vec![part("provider")],
            ),
            ("alone: an ES256 signature".into(), vec![part("signature")]),
            (
                "alone: pgbench, a session".into(),
                vec![0.0, part("insert")],
            ),
            (
                "alone: pgbench, a user".into(),
                vec![0.0, part("insert new")],
            ),
            (
                "alone: pgbench, an update".into(),
                vec![0.0, part("update")],
            ),
        ]);
        bars(
            "CPU ms of a request at 32 connections, and of its parts alone",
            &["service", "PostgreSQL", "provider"],
            &rows,
        )
    }
}

/// The date, the versions and the machine of the measurement.
async fn about(setting: &Setting) -> Vec<String> {
    let said = |program: &Path| {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let day = time::OffsetDateTime::from_unix_timestamp(vestibule::clock::now())
        .expect("the clock is sane")
        .date();
    let postgres: String = {
        let mut connection = setting.connect("postgres").await;
        sqlx::query_scalar("SHOW server_version")
            .fetch_one(&mut connection)
            .await
            .expect("it answers")
    };
    let version = postgres.split(' ').next().unwrap_or_default();
    vec![
        day.to_string(),
        said(&setting.binary),
        format!("PostgreSQL {version}"),
        processors(),
    ]
}
