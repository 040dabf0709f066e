//! Identifies `PostgreSQL`'s processes of one data directory: the server by its process id and its directory,
//! because the id alone may have passed to another program, and its children by their process titles. It ends none
//! of them.

#[cfg(target_os = "linux")]
pub(super) use linux::{is_server, titled};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{is_server, titled};

/// The implementation with `/proc`.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

    use rustix::process::Pid;

    pub(in super::super) fn is_server(pid: Pid, data_dir: &Path) -> bool {
        let process = PathBuf::from(format!("/proc/{pid}"));
        // A server's working directory is its data directory. Root without CAP_SYS_PTRACE, as in most containers,
        // may not see that, but the arguments are visible to all, and our servers are started with `-D <dir>`.
        is_postgres(&process)
            && (fs::read_link(process.join("cwd")).is_ok_and(|dir| dir == data_dir)
                || arguments(&process).any(|argument| argument == data_dir.as_os_str().as_bytes()))
    }

    pub(in super::super) fn titled(title: &str) -> Vec<Pid> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
                let process = entry.path();
                let found = is_postgres(&process)
                    && arguments(&process).next().is_some_and(|first| first.starts_with(title.as_bytes()));
                found.then_some(pid)
            })
            .collect()
    }

    /// Distinguishes a server from a shell that is open in the directory.
    fn is_postgres(process: &Path) -> bool {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name.contains("postgres"))
    }

    fn arguments(process: &Path) -> impl Iterator<Item = Vec<u8>> {
        fs::read(process.join("cmdline"))
            .unwrap_or_default()
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// The implementation with `ps`, for systems whose `/proc` is different or missing.
#[cfg(not(target_os = "linux"))]
mod portable {
    use std::path::Path;
    use std::process::Command;

    use rustix::process::Pid;

    pub(in super::super) fn is_server(pid: Pid, data_dir: &Path) -> bool {
        let data_dir = data_dir.to_string_lossy();
        commands().into_iter().any(|(found, command)| {
            // Our servers are started with `-D <dir>`.
            found == pid && command.contains("postgres") && command.contains(&*data_dir)
        })
    }

    pub(in super::super) fn titled(title: &str) -> Vec<Pid> {
        commands().into_iter().filter(|(_, command)| command.starts_with(title)).map(|(pid, _)| pid).collect()
    }

    /// Lists every process with its command line.
    fn commands() -> Vec<(Pid, String)> {
        let listed = Command::new("ps").args(["-A", "-ww", "-o", "pid=", "-o", "command="]).output();
        let listed = listed.map_or_else(|_| Vec::new(), |output| output.stdout);
        String::from_utf8_lossy(&listed)
            .lines()
            .filter_map(|line| {
                let (pid, command) = line.trim_start().split_once(' ')?;
                Some((Pid::from_raw(pid.parse().ok()?)?, command.trim_start().to_owned()))
            })
            .collect()
    }
}
