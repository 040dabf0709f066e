//! Errors, each in one line with the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

use thiserror::Error as ThisError;

/// The reason why there is no server. Every message is one line.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// No usable `PostgreSQL` was found on this machine.
    #[error(
        "no PostgreSQL {} or newer found{found}; install one (Debian, Ubuntu: `sudo apt-get install postgresql`; Fedora: `sudo dnf install postgresql-server`; macOS: `brew install postgresql@17`) or name its bin directory in {}",
        super::locate::OLDEST_MAJOR,
        super::locate::OVERRIDE
    )]
    NotInstalled {
        /// Empty, or " (only …)" about an installation that is too old.
        found: String,
    },
    /// The variable names a wrong bin directory.
    #[error("{} is set to {}, but {why}; correct it or unset it", super::locate::OVERRIDE, dir.display())]
    Override {
        /// The variable's value.
        dir: PathBuf,
        /// The problem with it.
        why: String,
    },
    /// Another program runs the server of this directory.
    #[error("{} is in use by another program (process {holder}); stop that one first, or give this one another directory (`ROCKET_DEV_DIR` / `dev_dir`) and another `ROCKET_PORT`", root.display())]
    InUse {
        /// The directory that both programs want.
        root: PathBuf,
        /// The other program's process id, or "unknown".
        holder: String,
    },
    /// This program is root, and there is no user to run the server as.
    #[error(
        "PostgreSQL refuses to run as root and there is no user `postgres` or `nobody` to run it as; create one (`useradd --system postgres`) or start this program as an ordinary user"
    )]
    NoAccount,
    /// A directory is not private to its owner.
    #[error("{} cannot be trusted: {why}; remove it and start again", path.display())]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// The problem with it.
        why: String,
    },
    /// The cluster belongs to another user than the server would run as.
    #[error("{} belongs to user id {owner}, but the server runs as user id {expected}; start this program as the former, or remove the directory to begin with an empty database", data_dir.display())]
    WrongOwner {
        /// The data directory.
        data_dir: PathBuf,
        /// Its owner.
        owner: u32,
        /// The server's user.
        expected: u32,
    },
    /// `initdb` failed.
    #[error("creating the PostgreSQL cluster in {} failed: {output}; correct that and start again", data_dir.display())]
    Initdb {
        /// The data directory that was to be created.
        data_dir: PathBuf,
        /// The last lines of its output, joined.
        output: String,
    },
    /// A server from an earlier run does not stop.
    #[error("PostgreSQL process {pid} is still running on {} and does not stop; end it (`kill -QUIT {pid}`) and start again", data_dir.display())]
    LeftBehind {
        /// The process.
        pid: i32,
        /// Its data directory.
        data_dir: PathBuf,
    },
    /// The server ended before it accepted connections.
    #[error("PostgreSQL did not start ({status}): {tail}; see {}", log.display())]
    Ended {
        /// Its exit status.
        status: String,
        /// The last lines of its log, joined.
        tail: String,
        /// The path of the log.
        log: PathBuf,
    },
    /// The server neither accepted connections nor ended.
    #[error("PostgreSQL was not ready after {seconds} s without a sign of progress: {tail}; see {}", log.display())]
    NotReady {
        /// The time without progress, in seconds.
        seconds: u64,
        /// The last lines of its log, joined.
        tail: String,
        /// The path of the log.
        log: PathBuf,
    },
    /// A statement failed.
    #[error("PostgreSQL refused what was asked of database {database}: {output}")]
    Psql {
        /// The database.
        database: String,
        /// The last lines of `psql`'s output, joined.
        output: String,
    },
    /// An operation of the operating system failed.
    #[error("cannot {action} {}: {source}; check that it exists and its permissions", path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Error {
    /// Builds an error for `map_err`: `action` is a verb that `path` completes.
    pub(super) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.as_ref().to_owned(), source }
    }
}

/// Returns the last few lines of `text` as one line, for a message.
pub(super) fn last_lines(text: &str) -> String {
    const LINES: usize = 6;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return "it wrote nothing".to_owned();
    }
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

/// Returns the output of a finished command, standard error last because it has the reason.
pub(super) fn said(output: &Output) -> String {
    last_lines(&format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}
