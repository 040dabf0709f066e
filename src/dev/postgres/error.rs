//! Errors, each in one line with the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The variable that names the bin directory, which replaces the search.
pub(super) const OVERRIDE: &str = "VESTIBULE_PG_BIN";

/// Older servers are out of support and not tested.
pub(super) const OLDEST_MAJOR: u32 = 14;

/// The reason why there is no server. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is empty, or " (only …)" about an installation that is too old.
    #[error(
        "no PostgreSQL {OLDEST_MAJOR} or newer found{}; install one (Debian, Ubuntu: `sudo apt-get install postgresql`; Fedora: `sudo dnf install postgresql-server`; macOS: `brew install postgresql@17`) or name its bin directory in {OVERRIDE}",
        .0
    )]
    NotInstalled(String),
    #[error("{OVERRIDE} is set to {}, but {}; correct it or unset it", .0.display(), .1)]
    Override(PathBuf, String),
    /// The second text is a process id or "unknown".
    #[error("{} is in use by another program (its PostgreSQL is process {}); stop it, or set another directory (`ROCKET_DEV_DIR` / `dev_dir`) and another `ROCKET_PORT`", .0.display(), .1)]
    InUse(PathBuf, String),
    #[error(
        "PostgreSQL refuses to run as root and there is no user `postgres` or `nobody` to run it as; create one (`useradd --system postgres`) or start this program as an ordinary user"
    )]
    NoAccount,
    #[error("{} cannot be trusted: it is no directory of this user; remove it and start again", .0.display())]
    Untrusted(PathBuf),
    #[error("creating the PostgreSQL cluster in {} failed: {}; fix the cause and start again", .0.display(), .1)]
    Initdb(PathBuf, String),
    /// The second text is the end of the server's log.
    #[error("PostgreSQL did not start: {}; see {}", .1, .0.display())]
    NotStarted(PathBuf, String),
    #[error("PostgreSQL rejected a statement on database {0}: {1}")]
    Psql(String, String),
    /// The first text is a verb that the path completes.
    #[error("cannot {} {}: {}; check that it exists and is accessible", .0, .1.display(), .2)]
    Io(&'static str, PathBuf, #[source] io::Error),
}

impl Error {
    /// Builds an error for `map_err`: `action` is a verb that `path` completes.
    pub(super) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io(action, path.as_ref().to_owned(), source)
    }
}

/// Returns the last few lines of `text` as one line, for a message.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return "no output".to_owned();
    }
    lines[lines.len().saturating_sub(6)..].join(" | ")
}

/// Returns the output of a finished command, standard error last because it has the reason.
pub(super) fn said(output: &Output) -> String {
    last_lines(&String::from_utf8_lossy(
        &[&*output.stdout, b"\n", &*output.stderr].concat(),
    ))
}
