//! The program, as an operator starts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reqwest::StatusCode;
use rustix::process::Signal;

use crate::deploy::tools::Running;
use crate::support::process::{eventually, free_port};
use crate::support::provider::Provider;
use crate::support::token;

/// The secret that all instances share.
pub const SECRET_KEY: &str = "a secret key that only the tests use";

/// One instance, started and stopped any number of times.
pub struct Vestibule {
    pub port: u16,
    settings: Vec<(String, String)>,
    log: PathBuf,
    running: Option<Running>,
}

impl Vestibule {
    /// An instance that does not run yet, and knows no setting but its port.
    pub fn bare(folder: &Path) -> Self {
        let port = free_port();
        let log = folder.join(format!("vestibule-{port}.log"));
        let bare = Self { port, settings: Vec::new(), log, running: None };
        bare.with("ROCKET_PORT", &port.to_string()).with("ROCKET_PROFILE", "release")
    }

    /// An instance that does not run yet.
    pub fn new(folder: &Path, database: &str, tokeninfo: &str) -> Self {
        [
            ("ROCKET_PUBLIC_URL", "https://id.example.com"),
            ("ROCKET_SECRET_KEY", SECRET_KEY),
            ("ROCKET_WORKERS", "2"),
            ("ROCKET_RATE_LIMIT", "{enabled=false}"),
            ("DATABASE_URL", database),
            ("IDP_CLIENT_ID", token::CLIENT_ID),
            ("IDP_ISSUERS", token::ISSUER),
            ("IDP_TOKENINFO_URL", tokeninfo),
            ("IDP_TOKEN_FORMAT", "jwt"),
        ]
        .into_iter()
        .fold(Self::bare(folder), |instance, (name, value)| instance.with(name, value))
    }

    /// Two that run, and believe a proxy on this machine.
    pub async fn two(folder: &Path, database: &str, provider: &Provider) -> [Self; 2] {
        let instance = || {
            Self::new(folder, database, &provider.tokeninfo_url())
                .with("ROCKET_TRUSTED_PROXIES", "127.0.0.1")
                .started()
        };
        [instance().await, instance().await]
    }

    /// With another setting.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Begins to run, and may not be ready for a while.
    pub fn start(&mut self) {
        let program = Path::new(env!("CARGO_BIN_EXE_vestibule"));
        let settings = &self.settings;
        self.running = Some(Running::start(program, &self.log, |command| {
            command.envs(settings.iter().map(|(name, value)| (name, value)));
            command.current_dir(env!("CARGO_TARGET_TMPDIR"));
        }));
    }

    /// Runs, and is ready.
    pub async fn started(mut self) -> Self {
        self.start();
        self.ready().await;
        self
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub async fn ready(&self) {
        eventually(&format!("an instance is ready; see {}", self.log.display()), async || {
            let answer = reqwest::get(format!("{}/readyz", self.url())).await.ok()?;
            (answer.status() == StatusCode::OK).then_some(())
        })
        .await;
    }

    /// The most memory that it has had so far, in bytes.
    pub fn peak(&self) -> usize {
        let status = format!("/proc/{}/status", self.running.as_ref().unwrap().id());
        let status = fs::read_to_string(status).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        peak.unwrap().trim().parse::<usize>().unwrap() << 10
    }

    pub fn tell_to_stop(&self) {
        self.running.as_ref().unwrap().signal(Signal::TERM);
    }

    /// Its exit code, once it has ended.
    pub async fn ended(&mut self) -> Option<i32> {
        self.running.as_mut().unwrap().ended().await
    }

    /// Runs one of its commands, with the same settings.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
        command.env_clear().envs(self.settings.iter().map(|(name, value)| (name, value)));
        command.current_dir(env!("CARGO_TARGET_TMPDIR")).args(arguments).output().unwrap()
    }

    /// Its log.
    pub fn said(&self) -> String {
        self.running.as_ref().unwrap().said()
    }
}
