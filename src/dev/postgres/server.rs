//! The server process, which `pg_ctl` starts and stops.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::Options;
use super::account::Account;
use super::error::{Error, last_lines};
use super::place;

/// The port is only a part of the socket's name, but clients need it.
pub(super) const PORT: u16 = 5432;
/// The seconds for a start, which takes long after a crash in the middle of much work.
const START: &str = "300";
/// The modes of a stop, each with its seconds.
const STOP: [(&str, &str); 2] = [("fast", "10"), ("immediate", "5")];
/// The time for which a start is repeated that finds the directory still in use, and the pause in between.
const STILL_IN_USE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(100);

/// Everything that identifies the server and starts it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) bin_dir: PathBuf,
    pub(super) data_dir: PathBuf,
    pub(super) socket_dir: PathBuf,
    pub(super) account: Account,
    pub(super) log: PathBuf,
}

impl Server {
    /// Starts the server, in place of one that a killed program has left. Returns once it accepts connections. The
    /// caller holds the lock.
    pub(super) fn run(&self, options: &Options) -> Result<(), Error> {
        let (arguments, began) = (self.arguments(options), Instant::now());
        // The log of the run before may explain a crash. The first run has none.
        let _ = fs::rename(&self.log, self.log.with_extension("log.old"));
        loop {
            if let Some(pid) = self.pid() {
                (options.progress)(&format!("stopping the PostgreSQL of an earlier run (process {pid}) ..."));
                self.stop();
            }
            if self.start(&arguments)? {
                return Ok(());
            }
            let log = fs::read(&self.log).map_err(Error::io("read", &self.log))?;
            let log = String::from_utf8_lossy(&log);
            // A predecessor, or its processes, may not be gone yet.
            let passes = log.contains("already exists") || log.contains("still in use");
            if !passes || began.elapsed() > STILL_IN_USE {
                return Err(Error::NotStarted(self.log.clone(), last_lines(&log)));
            }
            thread::sleep(RETRY);
        }
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.named_by(&self.data_dir.join("postmaster.pid"))
    }

    /// Stops the server if it runs, and waits for its end.
    pub(super) fn stop(&self) {
        for (mode, seconds) in STOP {
            // Without a server of ours, `pg_ctl` could signal another process.
            if self.pid().is_none() || matches!(self.pg_ctl(&["stop", "-m", mode, "-t", seconds]), Ok(true)) {
                break;
            }
        }
        // The next start creates it again, so an error does not matter.
        let _ = fs::remove_dir(&self.socket_dir);
    }

    /// Starts a server with an empty log. Returns true if it accepts connections.
    fn start(&self, arguments: &str) -> Result<bool, Error> {
        // Cleaners of /tmp remove directories that look unused.
        place::private(&self.socket_dir, self.account.uid, 0o700)?;
        if let Some(other) = self.named_by(&self.socket_dir.join(format!(".s.PGSQL.{PORT}.lock"))) {
            // Its data directory was removed. It would notice that within a minute.
            let _ = kill_process(other, Signal::QUIT);
        }
        File::create(&self.log).map_err(Error::io("create", &self.log))?;
        self.pg_ctl(&["start", "-t", START, "-o", arguments])
    }

    /// Returns the process in the first line of a lock file, if it is a server on this data directory.
    ///
    /// A file that names a dead process is kept: `PostgreSQL` handles it and first checks the shared memory it names.
    /// The file is removed if the process id now belongs to another program, which `PostgreSQL` would take for a
    /// running server.
    fn named_by(&self, file: &Path) -> Option<Pid> {
        let text = fs::read_to_string(file).ok()?;
        // It is negative for a server without a postmaster.
        let pid = Pid::from_raw(text.lines().next()?.trim().parse::<i32>().ok()?.checked_abs()?)?;
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return None;
        }
        if arguments_of(pid).contains(&*self.data_dir.to_string_lossy()) {
            return Some(pid);
        }
        let _ = fs::remove_file(file);
        None
    }

    /// Runs `pg_ctl`, whose messages are written to the server's log. Returns true if it succeeded.
    fn pg_ctl(&self, arguments: &[&str]) -> Result<bool, Error> {
        let program = self.bin_dir.join("pg_ctl");
        let log = || {
            let opened = OpenOptions::new().append(true).create(true).open(&self.log);
            opened.map_err(Error::io("open", &self.log))
        };
        let mut command = self.account.command(&program, &self.data_dir);
        command.args(arguments).args(["--silent", "--wait"]).env("PGDATA", &self.data_dir);
        let status = command.stdout(log()?).stderr(log()?).status().map_err(Error::io("run", &program))?;
        Ok(status.success())
    }

    /// Returns the server's arguments: its directory and all settings, which override the distribution's
    /// `postgresql.conf`. If a name occurs twice, the later one counts.
    fn arguments(&self, options: &Options) -> String {
        let mut settings = vec![
            format!("unix_socket_directories={}", self.socket_dir.display()),
            format!("port={PORT}"),
            format!("max_connections={}", options.max_connections),
        ];
        let mut set = |more: &[&str]| settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        set(&["listen_addresses=", "unix_socket_permissions=0700", "shared_buffers=64MB", "jit=off"]);
        // Some distributions collect logs in the data directory, where our error messages would not find them.
        set(&["timezone=UTC", "log_timezone=UTC", "log_destination=stderr", "logging_collector=off"]);
        if cfg!(target_os = "linux") {
            // A query ends soon after its client. Otherwise a long one of a killed program keeps its locks, and one of a
            // killed server prevents the next start.
            set(&["client_connection_check_interval=1s"]);
        }
        if !options.durable {
            // `synchronous_commit` stays on: without fsync it costs next to nothing, and off would lose commits when the
            // server is killed.
            set(&["fsync=off", "full_page_writes=off", "autovacuum=off"]);
            set(&["wal_level=minimal", "max_wal_senders=0"]);
        }
        settings.extend(options.settings.iter().map(|(name, value)| format!("{name}={value}")));
        // `pg_ctl` hands them to a shell.
        let quoted = |text: &str| format!("'{}' ", text.replace('\'', r"'\''"));
        let settings = settings.iter().map(|setting| format!("-c {}", quoted(setting)));
        format!("-D {}", quoted(&self.data_dir.to_string_lossy())) + &settings.collect::<String>()
    }
}

/// Returns the arguments of a process: from `/proc`, or from `ps` on systems that have none.
fn arguments_of(pid: Pid) -> String {
    let asked = fs::read(format!("/proc/{pid}/cmdline")).or_else(|_| {
        let ps = Command::new("ps").args(["-ww", "-o", "args=", "-p", &pid.to_string()]).output();
        ps.map(|output| output.stdout)
    });
    String::from_utf8_lossy(&asked.unwrap_or_default()).into_owned()
}
