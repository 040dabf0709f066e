//! The operating system user that the server runs as, and commands in its name. A choice is needed
//! only for root, because `PostgreSQL` refuses to run as root.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use super::error::Error;

/// User names in order of preference; OpenBSD and macOS use the second.
const NAMES: [&str; 3] = ["postgres", "_postgres", "nobody"];

#[derive(Debug)]
pub(super) struct Account {
    pub(super) uid: u32,
    /// Name and group, if the server runs as another user than this program.
    pub(super) other: Option<(&'static str, u32)>,
}

impl Account {
    pub(super) fn choose() -> Result<Self, Error> {
        let user = geteuid();
        if !user.is_root() {
            return Ok(Self {
                uid: user.as_raw(),
                other: None,
            });
        }
        NAMES
            .into_iter()
            .find_map(Self::find)
            .ok_or(Error::NoAccount)
    }

    /// Asks `id`, which also knows users that are not in `/etc/passwd`.
    fn find(name: &'static str) -> Option<Self> {
        let id = |which| -> Option<u32> {
            let output = Command::new("id").args([which, name]).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        let uid = id("-u")?;
        let group = id("-g")?;
        // A second name for root would not drop privileges.
        (uid != 0).then_some(Self {
            uid,
            other: Some((name, group)),
        })
    }

    /// Returns a command that runs as this user in `dir`. The spawn fails if the user cannot enter
    /// the directory, because std changes the directory after the user.
    pub(super) fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = plain(program);
        command.current_dir(dir);
        if let Some((_, group)) = self.other {
            // For a root parent, std calls setgid, then setgroups(0, NULL), then setuid, so no
            // supplementary group of root remains.
            command.uid(self.uid).gid(group).env_remove("HOME");
        }
        command
    }
}

/// Returns a command without the developer's `PG*` variables (`PGPORT` alone would move the
/// socket). Its messages are in English, because they are matched.
pub(super) fn plain(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}
