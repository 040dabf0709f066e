//! Load by `wrk`, and the processor time of each process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use super::machine::{busy, cpu, own_cpu};
use super::setting::Setting;

/// Measured figures, by name and unit.
pub type Figures = BTreeMap<&'static str, f64>;

/// The use of the file's lines.
#[derive(Clone, Copy)]
pub enum Lines {
    /// Bodies, again and again.
    Bodies,
    /// Bodies, each once.
    BodiesOnce,
    /// Bodies with a refresh token. The response's token replaces it.
    Refreshes,
    /// Values of a header of a GET.
    Header(&'static str),
}

/// Requests of one kind.
pub struct Load<'a> {
    pub url: String,
    pub lines: (Lines, &'a Path),
    /// A text in every successful response.
    pub marker: &'static str,
    /// The process that serves the requests.
    pub pid: u32,
}

/// The results that `load.lua` prints.
#[derive(Deserialize)]
struct Told {
    issued: u32,
    good: u32,
    answered: u32,
    dry: u32,
    socket_errors: u32,
    seconds: f64,
    p50_ms: f64,
    p99_ms: f64,
    bad: String,
}

impl Load<'_> {
    /// Sends requests as fast as the responses arrive.
    pub async fn run(&self, setting: &Setting, connections: u32, seconds: u32) -> Figures {
        setting.execute("postgres", &["CHECKPOINT"]).await;
        let roots = [self.pid, setting.postmaster(), setting.provider.pid()];
        let before = roots.map(cpu);
        let own = own_cpu();
        let machine = busy();
        let told = self.wrk(connections, seconds);
        let whole = roots.map(cpu);
        let now = busy();
        let ours = whole
            .iter()
            .zip(before)
            .map(|(after, before)| after - before)
            .sum::<f64>()
            + own_cpu()
            - own;
        self.calm(whole[0]).await;
        let after = roots.map(cpu);
        assert!(
            told.good == told.answered && told.dry == 0 && told.socket_errors == 0,
            "{}: {} of {} good, {} without a line, {} lost connections, first bad one: {}",
            self.url,
            told.good,
            told.answered,
            told.dry,
            told.socket_errors,
            told.bad
        );
        // wrk ends without the last responses, which cost as much as the others.
        let each =
            |process: usize| (after[process] - before[process]) * 1000.0 / f64::from(told.issued);
        BTreeMap::from([
            ("rps", f64::from(told.good) / told.seconds),
            ("p50_ms", told.p50_ms),
            ("p99_ms", told.p99_ms),
            ("service_ms", each(0)),
            ("postgres_ms", each(1)),
            ("provider_ms", each(2)),
            (
                "others_percent",
                100.0 * (now.0 - machine.0 - ours).max(0.0) / (now.1 - machine.1),
            ),
        ])
    }

    /// Waits until the process is idle.
    async fn calm(&self, mut last: f64) {
        for _ in 0..50 {
            sleep(Duration::from_millis(100)).await;
            let now = cpu(self.pid);
            if now - last < 0.02 {
                break;
            }
            last = now;
        }
    }

    fn wrk(&self, connections: u32, seconds: u32) -> Told {
        let (method, header) = match self.lines.0 {
            Lines::Header(name) => ("GET", name),
            _ => ("POST", ""),
        };
        let flag = |set| if set { "1" } else { "0" };
        let mut wrk = Command::new("wrk");
        wrk.args(["-t1", "--timeout", "60s"])
            .arg(format!("-c{connections}"))
            .arg(format!("-d{seconds}s"));
        wrk.arg("-s")
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/benches/performance/load.lua"
            ))
            .arg(&self.url);
        let target = url::Url::parse(&self.url).expect("it is a URL");
        wrk.env("LINES", self.lines.1)
            .envs([
                ("METHOD", method),
                ("TARGET", target.path()),
                ("HEADER", header),
                ("MARKER", self.marker),
            ])
            .env("ONCE", flag(matches!(self.lines.0, Lines::BodiesOnce)))
            .env("QUEUE", flag(matches!(self.lines.0, Lines::Refreshes)));
        let output = wrk.output().expect("wrk is there");
        let text = String::from_utf8_lossy(&output.stdout);
        let told = text.lines().find_map(|line| line.strip_prefix("JSON "));
        let failed = || panic!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(told.unwrap_or_else(failed)).expect("the script writes JSON")
    }
}
