//! Runs `PostgreSQL`'s programs: as the right user, with a clean environment, and never longer than this program.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::account::Account;

/// Returns a command without the developer's `PG*` variables (`PGPORT` alone would move the socket). Its messages
/// are in English, because they are matched.
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

/// Returns a command that runs as the server's user in `dir`. The spawn fails if that user cannot enter the
/// directory, because std changes the directory after the user.
pub(super) fn as_server(program: impl AsRef<OsStr>, account: Option<&Account>, dir: &Path) -> Command {
    use std::os::unix::process::CommandExt as _;

    let mut command = plain(program);
    command.current_dir(dir);
    if let Some(account) = account {
        // For a root parent, std calls setgid, then setgroups(0, NULL), then setuid, so no supplementary group of
        // root remains.
        command.uid(account.uid).gid(account.gid);
        command.env_remove("HOME");
    }
    command
}

/// Makes the command end when the *thread* that spawns it ends.
///
/// The signal is SIGINT, a fast shutdown, rather than SIGQUIT, an immediate one. It leaves a clean cluster, so the
/// next start needs no recovery, and `initdb` removes incomplete files. The next start sends SIGQUIT to a server
/// that is too busy to stop.
///
/// Other systems than Linux have no such signal; there, the next start finds the server and stops it.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only the child itself can ask for the signal, between fork and exec")]
pub(super) fn end_with_parent(command: &mut Command) {
    use std::io::{Error, ErrorKind};
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let ask = move || {
        // std runs this after it has changed the user, which would clear the request.
        set_parent_process_death_signal(Some(Signal::INT))?;
        // A parent that died before the request will send no signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(Error::from(ErrorKind::BrokenPipe)) }
    };
    // SAFETY: the closure runs in the forked child of a threaded program, so
    // it must be async-signal-safe. It makes two system calls directly and
    // neither allocates, locks nor panics; the captured value is `Copy`, and
    // both error values are built without allocation.
    unsafe { command.pre_exec(ask) };
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_with_parent(_command: &mut Command) {}
