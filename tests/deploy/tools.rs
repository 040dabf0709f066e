//! Programs of others that run during a test, and files made from shipped files.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio::sync::{Mutex, MutexGuard};

pub use crate::support::folder::{Folder, folder};
use crate::support::process::eventually;

/// The newest PostgreSQL's programs.
pub fn postgres() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .max();
    newest.map_or_else(|| PathBuf::from("/usr/bin"), |(_, folder)| folder)
}

/// A shipped file with other addresses and paths. It must contain each of the replaced texts.
pub fn shipped(file: &str, changes: &[(&str, &str)]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(file);
    let mut text = fs::read_to_string(&file).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{} has no {from}", file.display());
        text = text.replace(from, to);
    }
    text
}

/// A program that runs until it is dropped.
pub struct Running {
    process: Child,
    log: PathBuf,
}

impl Running {
    /// Starts it with its output in a file. The system ends it when the test's thread ends, in any
    /// way.
    pub fn start(program: &Path, log: &Path, prepare: impl FnOnce(&mut Command)) -> Self {
        Self::start_as(&[], program, log, prepare)
    }

    /// Does the same as PostgreSQL's user if this user is root, since PostgreSQL refuses to run as
    /// root.
    pub fn start_as_server(program: &Path, log: &Path, prepare: impl FnOnce(&mut Command)) -> Self {
        let drop = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
        Self::start_as(
            if geteuid().is_root() { &drop } else { &[] },
            program,
            log,
            prepare,
        )
    }

    fn start_as(
        become_: &[&str],
        program: &Path,
        log: &Path,
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = Command::new("setpriv");
        command
            .args(become_)
            .args(["--pdeathsig=KILL", "--"])
            .arg(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", env::var_os("PATH").unwrap_or_default());
        prepare(&mut command);
        let output = File::options().create(true).append(true).open(log).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        Self {
            process: command.spawn().expect("there is setpriv"),
            log: log.to_owned(),
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub async fn ended(&mut self) -> Option<i32> {
        let status = eventually("the program ends", async || {
            self.process.try_wait().unwrap()
        })
        .await;
        status.code()
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Keeps other tests from running while this one depends on the machine's speed.
pub async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}
