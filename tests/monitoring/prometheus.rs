//! Debian's Prometheus with the files in `deploy/prometheus`, with shorter times.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::deploy::tools::{self, Folder, Running, folder};
use crate::monitoring::client::CLIENT;
use crate::programs::program;
use crate::support::process::{eventually, free_port, until};

/// Durations in the files, and their shorter replacements here.
const SHORTER: [(&str, &str); 5] = [
    ("[1m]", "[4s]"),
    ("[5m]", "[6s]"),
    ("for: 1m", "for: 1s"),
    ("for: 2m", "for: 1s"),
    ("for: 5m", "for: 1s"),
];

/// Returns `true` if Prometheus and its tool are installed. Otherwise the test is skipped.
pub fn is_here() -> bool {
    ["prometheus", "promtool"]
        .into_iter()
        .all(|name| program(name, (2, 42)).is_some())
}

/// A file of `deploy`.
pub fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(path)
}

/// Asserts that `promtool` accepts a file.
pub fn promtool(arguments: &[&str], file: &Path) {
    let output = Command::new("promtool")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}: {}",
        file.display(),
        String::from_utf8_lossy(&said)
    );
}

/// A running Prometheus, killed when it is dropped.
pub struct Prometheus {
    url: String,
    _running: Running,
    _folder: Folder,
}

impl Prometheus {
    /// Watches the programs at these two addresses, with the shipped configuration and alerts.
    pub async fn watch(instances: [&str; 2]) -> Self {
        let port = free_port();
        let folder = folder(&format!("prometheus-{port}"));
        fs::write(
            folder.join("alerts.yml"),
            tools::shipped("prometheus/alerts.yml", &SHORTER),
        )
        .unwrap();
        let changes = [
            // The job's own interval, since operators copy the job.
            ("\n    scrape_interval: 15s", "\n    scrape_interval: 500ms"),
            ("evaluation_interval: 15s", "evaluation_interval: 250ms"),
            ("vestibule-1.internal:8000", instances[0]),
            ("vestibule-2.internal:8000", instances[1]),
        ];
        let configuration = folder.join("prometheus.yml");
        fs::write(
            &configuration,
            tools::shipped("prometheus/prometheus.yml", &changes),
        )
        .unwrap();
        let log = folder.join("log");
        let running = Running::start(Path::new("prometheus"), &log, |command| {
            command.arg(format!("--config.file={}", configuration.display()));
            command.arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ));
            command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        });
        let url = format!("http://127.0.0.1:{port}");
        eventually(
            &format!("Prometheus is ready; see {}", log.display()),
            async || {
                let answer = CLIENT.get(format!("{url}/-/ready")).send().await.ok()?;
                answer.status().is_success().then_some(())
            },
        )
        .await;
        Self {
            url,
            _running: running,
            _folder: folder,
        }
    }

    /// The data at a path of its API.
    pub async fn ask(&self, path: &str) -> Value {
        let answer = CLIENT
            .get(format!("{}/api/v1/{path}", self.url))
            .send()
            .await
            .unwrap();
        let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// The rules that it has loaded.
    pub async fn rules(&self) -> Vec<Value> {
        let groups = self.ask("rules").await;
        let groups = groups["groups"].as_array().unwrap();
        groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone())
            .collect()
    }

    /// The values of one label of the firing alerts of that name.
    pub async fn firing(&self, name: &str, label: &str) -> BTreeSet<String> {
        let alerts = self.ask("alerts").await;
        let alerts = alerts["alerts"].as_array().unwrap().iter();
        let ours = alerts.filter(|it| it["labels"]["alertname"] == name && it["state"] == "firing");
        ours.map(|alert| {
            alert["labels"][label]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
    }

    /// Waits until alerts of that name fire for this value of the label, and for no other.
    pub async fn fires(&self, name: &str, label: &str, value: &str) {
        until(&format!("{name} fires for {value}"), async || {
            self.firing(name, label).await == BTreeSet::from([value.to_owned()])
        })
        .await;
    }

    /// Waits until no alert of that name fires.
    pub async fn is_silent(&self, name: &str) {
        until(&format!("{name} ends"), async || {
            self.firing(name, "alertname").await.is_empty()
        })
        .await;
    }
}
