//! The program itself as a process, in the profile of deployments.

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use uuid::Uuid;

use super::app::{Answer, App};
use super::cluster::Database;
pub use super::port::free_port;
use super::provider::Provider;
use super::token::{CLIENT_ID, ISSUER};

/// The secret key of the tests.
pub const SECRET_KEY: &str = "a secret key that only the tests use";

/// The settings that a deployment needs.
pub fn complete_settings<'a>(
    database: &'a str,
    tokeninfo: &'a str,
) -> [(&'static str, &'a str); 7] {
    [
        ("ROCKET_PROFILE", "release"),
        ("ROCKET_PUBLIC_URL", "http://127.0.0.1:8000"),
        ("ROCKET_SECRET_KEY", SECRET_KEY),
        ("DATABASE_URL", database),
        ("IDP_CLIENT_ID", CLIENT_ID),
        ("IDP_ISSUERS", ISSUER),
        ("IDP_TOKENINFO_URL", tokeninfo),
    ]
}

/// The program with only these settings. The last of several with one name counts.
pub fn command(settings: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vestibule"));
    command.env_clear().current_dir(env!("CARGO_TARGET_TMPDIR"));
    command.envs(settings.iter().copied()).args(arguments);
    command
}

/// Runs a command of the program, and returns its output.
pub async fn run(settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = command(settings, arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

/// A running program, killed when it is dropped.
pub struct Process {
    child: Child,
    /// Its base URL.
    pub url: String,
    /// A client that opens a connection for each request.
    pub client: Client,
    log: PathBuf,
}

impl Process {
    /// Starts it with the settings that a deployment needs, and further settings.
    pub fn start(port: u16, database: &str, tokeninfo: &str, settings: &[(&str, &str)]) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_vestibule"));
        Self::run(program, port, database, tokeninfo, settings)
    }

    /// Starts it on a port of its own, and waits until it is ready.
    pub async fn ready(
        database: &Database,
        provider: &Provider,
        settings: &[(&str, &str)],
    ) -> Self {
        let service = Self::start(
            free_port(),
            &database.url,
            &provider.tokeninfo_url(),
            settings,
        );
        service.answers("/readyz", 200).await;
        service
    }

    /// Starts it from a shell with that soft limit of open files, which the program may raise.
    pub fn start_limited(port: u16, database: &str, tokeninfo: &str, files: u32) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args([
            "-c",
            &format!(
                "ulimit -Sn {files} && exec {}",
                env!("CARGO_BIN_EXE_vestibule")
            ),
        ]);
        Self::run(shell, port, database, tokeninfo, &[])
    }

    /// Starts it under a program that watches it.
    #[allow(dead_code, reason = "only the whole tests watch it")]
    pub fn start_under(
        watcher: &str,
        arguments: &[&str],
        database: &str,
        tokeninfo: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut program = Command::new(watcher);
        program.args(arguments).arg(env!("CARGO_BIN_EXE_vestibule"));
        Self::run(program, free_port(), database, tokeninfo, settings)
    }

    /// Starts it with a pipe from which the test reads the log.
    pub fn start_piped(
        port: u16,
        database: &str,
        tokeninfo: &str,
        settings: &[(&str, &str)],
    ) -> (Self, ChildStderr) {
        let program = Command::new(env!("CARGO_BIN_EXE_vestibule"));
        let mut process =
            Self::run_to(Stdio::piped(), program, port, database, tokeninfo, settings);
        let log = process.child.stderr.take().unwrap();
        (process, log)
    }

    #[allow(dead_code, reason = "only the whole tests watch it")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn run(
        program: Command,
        port: u16,
        database: &str,
        tokeninfo: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("process-{}.log", Uuid::now_v7()));
        let file = File::create(&log).unwrap().into();
        let mut process = Self::run_to(file, program, port, database, tokeninfo, settings);
        process.log = log;
        process
    }

    fn run_to(
        log: Stdio,
        mut program: Command,
        port: u16,
        database: &str,
        tokeninfo: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let child = program
            .env_clear()
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .envs(complete_settings(database, tokeninfo))
            .envs(settings.iter().copied())
            .env("ROCKET_PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let client = Client::builder().pool_max_idle_per_host(0).build().unwrap();
        Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
            client,
            log: PathBuf::new(),
        }
    }

    /// Repeats a GET until its response has this status, and returns the body.
    pub async fn answers(&self, path: &str, status: u16) -> String {
        let what = format!("{path} answers {status}");
        eventually(&what, async || {
            let answer = self
                .client
                .get(format!("{}{path}", self.url))
                .send()
                .await
                .ok()?;
            if answer.status() == status {
                answer.text().await.ok()
            } else {
                None
            }
        })
        .await
    }

    /// Posts JSON with these further headers.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .header("Content-Type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        App::answer(request.body(body.to_string()).send().await.unwrap()).await
    }

    pub async fn sign_in(&self, provider: &str, body: &Value) -> Answer {
        self.post(&format!("/api/v1/auth/oauth/{provider}"), &[], body)
            .await
    }

    /// Its log so far. The line about a response may follow the response.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until these words are in its log that many times, and returns the log.
    pub async fn tells(&self, words: &str, times: usize) -> String {
        eventually(&format!("the log tells {words:?}"), async || {
            Some(self.log()).filter(|log| log.matches(words).count() >= times)
        })
        .await
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until something else has ended it.
    pub async fn ended(&mut self) -> ExitStatus {
        eventually("the program ends", async || self.child.try_wait().unwrap()).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.log);
    }
}

/// Repeats an attempt until it succeeds. Fails the test after 90 seconds, or after ten minutes
/// where `CI` is set.
pub async fn eventually<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let patience = Duration::from_secs(if env::var_os("CI").is_some() { 600 } else { 90 });
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if let Some(done) = attempt().await {
            return done;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}")
}

/// Repeats a check until it returns `true`, for as long as [`eventually`] does.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    eventually(what, async || is_so().await.then_some(())).await;
}
