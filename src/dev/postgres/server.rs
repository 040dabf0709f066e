//! The server process. It ends with this program, however that ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Options;
use super::account::Account;
use super::error::{Error, last_lines};
use super::place;

/// The port is only a part of the socket's name, but clients need it.
pub(super) const PORT: u16 = 5432;
/// Becomes the server, beside a process that waits for the end of its input, and so of this
/// program, and then asks the server for a fast shutdown. That process is no child of the server,
/// which would take it for one of its own.
const WATCHED: &str = r#"exec 3<&0 </dev/null
( { read -r _ <&3; kill -INT $$; } >/dev/null 2>&1 & )
exec "$@" 3<&-"#;
/// The time for the end of a server whose program has ended, and the pause between two looks.
const ENDING: Duration = Duration::from_secs(10);
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// Everything that identifies the server and starts it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) bin_dir: PathBuf,
    pub(super) data_dir: PathBuf,
    pub(super) socket_dir: PathBuf,
    pub(super) account: Account,
    /// A running server and its processes have it open, and so hold its lock (`flock`), which the
    /// kernel releases however they end. `PostgreSQL`'s own locks name a process id, which another
    /// program may have by now.
    pub(super) log: PathBuf,
}

impl Server {
    /// Returns true if a server runs, or a program is about to start one.
    pub(super) fn is_running(&self) -> Result<bool, Error> {
        Ok(self.try_lock()?.is_none())
    }

    /// Takes the lock. Waits a moment for the server of a program that has just ended. If the lock
    /// is still taken then, the error names the process that holds it.
    pub(super) fn lock(&self) -> Result<File, Error> {
        let began = Instant::now();
        while began.elapsed() < ENDING {
            if let Some(log) = self.try_lock()? {
                return Ok(log);
            }
            thread::sleep(PAUSE);
        }
        let file = fs::read_to_string(self.data_dir.join("postmaster.pid")).unwrap_or_default();
        let holder = file.lines().next().unwrap_or("unknown").to_owned();
        Err(Error::InUse(self.data_dir.clone(), holder))
    }

    fn try_lock(&self) -> Result<Option<File>, Error> {
        let opened = OpenOptions::new().append(true).create(true).open(&self.log);
        let log = opened.map_err(Error::io("open", &self.log))?;
        match log.try_lock() {
            Ok(()) => Ok(Some(log)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::io("lock", &self.log)(source)),
        }
    }

    /// Starts the server with an empty log. The server ends when the returned process's input is
    /// closed.
    pub(super) fn spawn(&self, log: File, options: &Options) -> Result<Child, Error> {
        place::private(&self.socket_dir, self.account.uid, 0o700)?;
        // No other server has the lock, so these files are left from a server that has ended.
        for left in [
            self.data_dir.join("postmaster.pid"),
            self.socket_dir.join(format!(".s.PGSQL.{PORT}.lock")),
        ] {
            let _ = fs::remove_file(left);
        }
        let errors = log
            .set_len(0)
            .and_then(|()| log.try_clone())
            .map_err(Error::io("write", &self.log))?;
        let program = self.bin_dir.join("postgres");
        let mut command = self.account.command("/bin/sh", &self.data_dir);
        command
            .args(["-c", WATCHED, "sh"])
            .arg(&program)
            .arg("-D")
            .arg(&self.data_dir);
        for setting in self.settings(options) {
            command.args(["-c", &setting]);
        }
        // Ctrl-C in a terminal ends the programs of a process group.
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors);
        command.spawn().map_err(Error::io("run", &program))
    }

    /// Returns the error of a server that has ended at its start.
    pub(super) fn not_started(&self) -> Error {
        let log = fs::read(&self.log).unwrap_or_default();
        Error::NotStarted(self.log.clone(), last_lines(&String::from_utf8_lossy(&log)))
    }

    /// Returns all settings, which override the distribution's `postgresql.conf`. If a name occurs
    /// twice, the later one counts.
    fn settings(&self, options: &Options) -> Vec<String> {
        let mut settings = vec![
            format!("unix_socket_directories={}", self.socket_dir.display()),
            format!("port={PORT}"),
            format!("max_connections={}", options.max_connections),
        ];
        let mut set =
            |more: &[&str]| settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        set(&[
            "listen_addresses=",
            "unix_socket_permissions=0700",
            "shared_buffers=64MB",
            "jit=off",
        ]);
        // Some distributions collect logs in the data directory, where our error messages would not
        // find them.
        set(&[
            "timezone=UTC",
            "log_timezone=UTC",
            "log_destination=stderr",
            "logging_collector=off",
        ]);
        if cfg!(target_os = "linux") {
            // A query ends soon after its client. Otherwise a long one of a killed program keeps
            // its locks, and one of a killed server prevents the next start.
            set(&["client_connection_check_interval=1s"]);
        }
        if !options.durable {
            // `synchronous_commit` stays on: without fsync it costs next to nothing, and off would lose commits when the
            // server is killed.
            set(&["fsync=off", "full_page_writes=off", "autovacuum=off"]);
            set(&["wal_level=minimal", "max_wal_senders=0"]);
        }
        settings.extend(
            options
                .settings
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        settings
    }
}
