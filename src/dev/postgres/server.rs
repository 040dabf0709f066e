//! One server process: spawning it and checking its readiness. The supervisor decides when to spawn it.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Child;

use super::Progress;
use super::account::Account;
use super::command;
use super::error::Error;
use super::log::Log;
use super::pidfile;

/// Everything needed to spawn the server.
pub(super) struct Server {
    pub(super) bin_dir: PathBuf,
    pub(super) data_dir: PathBuf,
    pub(super) socket_dir: PathBuf,
    pub(super) account: Option<Account>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) log: Log,
    pub(super) progress: Progress,
}

impl Server {
    /// Spawns the server. It ends with the calling thread (on Linux), which should therefore live as long as the
    /// program.
    pub(super) fn spawn(&self) -> Result<Child, Error> {
        let program = self.bin_dir.join("postgres");
        let output = self.log.writer()?;
        let errors = output.try_clone().map_err(Error::io("open", self.log.path()))?;
        let mut command = command::as_server(&program, self.account.as_ref(), &self.data_dir);
        command
            .arg("-D")
            .arg(&self.data_dir)
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in a terminal reaches a whole process group, but this program decides when the server stops.
            .process_group(0);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command::end_with_parent(&mut command);
        command.spawn().map_err(Error::io("run", &program))
    }

    /// Returns true if `child` accepts connections.
    pub(super) fn is_ready(&self, child: &Child) -> bool {
        matches!(
            pidfile::read(&self.data_dir),
            Ok(Some(file)) if file.ready
                && u32::try_from(file.pid.as_raw_nonzero().get()) == Ok(child.id())
        )
    }

    pub(super) fn progress(&self, line: &str) {
        (self.progress)(line);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("bin_dir", &self.bin_dir)
            .field("data_dir", &self.data_dir)
            .field("socket_dir", &self.socket_dir)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}
