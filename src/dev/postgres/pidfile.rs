//! `postmaster.pid`, which a server keeps in its data directory, with its process id and status.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::process::Pid;

/// The relevant parts of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PidFile {
    pub(super) pid: Pid,
    pub(super) ready: bool,
}

pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("postmaster.pid")
}

/// Returns the file's content; `None` if there is no file or it is not yet written.
pub(super) fn read(data_dir: &Path) -> io::Result<Option<PidFile>> {
    match fs::read(path(data_dir)) {
        Ok(bytes) => Ok(parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses the file. Line 1 is the process id (negative for a standalone backend); line 8 is the status, which is
/// "ready" once connections are accepted.
fn parse(text: &str) -> Option<PidFile> {
    let mut lines = text.lines();
    let pid: i32 = lines.next()?.trim().parse().ok()?;
    Some(PidFile {
        pid: Pid::from_raw(pid.checked_abs()?)?,
        ready: lines.nth(6).is_some_and(|status| status.trim() == "ready"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_the_eighth_line_says_so() {
        let head = "123\n/data\n1700000000\n5432\n/tmp/s\n\n  1234   5\n";
        assert!(!parse(head).unwrap().ready);
        assert!(!parse(&format!("{head}starting\n")).unwrap().ready);
        let ready = parse(&format!("{head}ready   \n")).unwrap();
        assert!(ready.ready);
        assert_eq!(ready.pid.as_raw_nonzero().get(), 123);
    }

    #[test]
    fn a_standalone_backend_counts_and_nonsense_does_not() {
        assert_eq!(parse("-42\n").unwrap().pid.as_raw_nonzero().get(), 42);
        assert_eq!(parse("0\n"), None);
        assert_eq!(parse(""), None);
    }
}
