//! The program, started as operators start it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use reqwest::StatusCode;
use rustix::process::Signal;
use tokio::sync::MutexGuard;

use crate::deploy::haproxy::HaProxy;
use crate::deploy::nginx::Nginx;
use crate::deploy::site::Site;
use crate::deploy::tools::{Folder, Running, alone, folder};
use crate::support::cluster::Database;
use crate::support::process::{SECRET_KEY, eventually, free_port};
use crate::support::provider::Provider;
use crate::support::token;

/// One instance, which tests can start and stop any number of times.
pub struct Vestibule {
    pub port: u16,
    settings: Vec<(String, String)>,
    log: PathBuf,
    running: Option<Running>,
}

impl Vestibule {
    /// An instance that does not run yet, with only its port set.
    pub fn bare(folder: &Path) -> Self {
        let port = free_port();
        let log = folder.join(format!("vestibule-{port}.log"));
        let bare = Self {
            port,
            settings: Vec::new(),
            log,
            running: None,
        };
        bare.with("ROCKET_PORT", &port.to_string())
            .with("ROCKET_PROFILE", "release")
    }

    /// An instance that does not run yet, without a provider.
    pub fn without_provider(folder: &Path, database: &str) -> Self {
        Self::bare(folder).with_all(&[
            ("ROCKET_PUBLIC_URL", "https://id.example.com"),
            ("ROCKET_SECRET_KEY", SECRET_KEY),
            ("ROCKET_WORKERS", "2"),
            ("ROCKET_RATE_LIMIT", "{enabled=false}"),
            ("DATABASE_URL", database),
        ])
    }

    /// An instance that does not run yet.
    pub fn new(folder: &Path, database: &str, tokeninfo: &str) -> Self {
        Self::without_provider(folder, database).with_all(&[
            ("IDP_CLIENT_ID", token::CLIENT_ID),
            ("IDP_ISSUERS", token::ISSUER),
            ("IDP_TOKENINFO_URL", tokeninfo),
            ("IDP_TOKEN_FORMAT", "jwt"),
        ])
    }

    /// Starts two instances that trust a proxy on this machine, with further settings.
    pub async fn two(
        folder: &Path,
        database: &str,
        provider: &Provider,
        more: &[(&str, &str)],
    ) -> [Self; 2] {
        let instance = || {
            let instance = Self::new(folder, database, &provider.tokeninfo_url());
            instance
                .with("ROCKET_TRUSTED_PROXIES", "127.0.0.1")
                .with_all(more)
                .started()
        };
        [instance().await, instance().await]
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn with_all(self, settings: &[(&str, &str)]) -> Self {
        settings
            .iter()
            .fold(self, |instance, (name, value)| instance.with(name, value))
    }

    /// Starts it, without waiting until it is ready.
    pub fn start(&mut self) {
        let program = Path::new(env!("CARGO_BIN_EXE_vestibule"));
        let settings = &self.settings;
        self.running = Some(Running::start(program, &self.log, |command| {
            command.envs(settings.iter().map(|(name, value)| (name, value)));
            command.current_dir(env!("CARGO_TARGET_TMPDIR"));
        }));
    }

    /// Starts it, and waits until it is ready.
    pub async fn started(mut self) -> Self {
        self.start();
        self.ready().await;
        self
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub async fn ready(&self) {
        eventually(
            &format!("an instance is ready; see {}", self.log.display()),
            async || {
                let answer = reqwest::get(format!("{}/readyz", self.url())).await.ok()?;
                (answer.status() == StatusCode::OK).then_some(())
            },
        )
        .await;
    }

    /// Its peak of resident memory so far, in bytes.
    pub fn peak(&self) -> usize {
        let status = format!("/proc/{}/status", self.running.as_ref().unwrap().id());
        let status = fs::read_to_string(status).unwrap();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
        peak.unwrap().trim().parse::<usize>().unwrap() << 10
    }

    pub fn tell_to_stop(&self) {
        self.running.as_ref().unwrap().signal(Signal::TERM);
    }

    pub async fn ended(&mut self) -> Option<i32> {
        self.running.as_mut().unwrap().ended().await
    }

    /// Runs one of its commands, with the same settings.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
        command
            .env_clear()
            .envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// The output of `vestibule check`, which may fail.
    pub fn check(&self) -> String {
        String::from_utf8(self.run(&["check"]).stdout).unwrap()
    }

    pub fn appoint(&self, email: &str) {
        self.prints(&["staff", "add", email, "--role", "admin"]);
    }

    pub fn said(&self) -> String {
        self.running.as_ref().unwrap().said()
    }
}

/// Two instances with their database and provider. Other tests wait meanwhile.
pub struct Deployment {
    pub instances: [Vestibule; 2],
    pub provider: Arc<Provider>,
    pub database: Database,
    pub folder: Folder,
    _alone: MutexGuard<'static, ()>,
}

impl Deployment {
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    pub async fn start_with(name: &str, more: &[(&str, &str)]) -> Self {
        let alone = alone().await;
        let folder = folder(name);
        let database = Database::create().await;
        let provider = Arc::new(Provider::start().await);
        let instances = Vestibule::two(&folder, &database.url, &provider, more).await;
        Self {
            instances,
            provider,
            database,
            folder,
            _alone: alone,
        }
    }

    /// Starts HAProxy for them, if it is installed, with some of the shipped settings replaced.
    pub async fn haproxy(&self, changes: &[(&str, &str)]) -> Option<HaProxy> {
        HaProxy::start(&self.folder, &self.instances, changes).await
    }

    pub async fn nginx(&self, changes: &[(&str, &str)]) -> Option<Nginx> {
        Nginx::start(&self.folder, &self.instances, changes).await
    }

    /// Runs `ask` through HAProxy, and then through nginx.
    pub async fn through_each_proxy(
        name: &str,
        [haproxy, nginx]: [&[(&str, &str)]; 2],
        ask: impl AsyncFn(&Site, &Self),
    ) {
        let deployment = Self::start(name).await;
        if let Some(proxy) = deployment.haproxy(haproxy).await {
            ask(&proxy.site, &deployment).await;
        }
        if let Some(proxy) = deployment.nginx(nginx).await {
            ask(&proxy.site, &deployment).await;
        }
    }
}
