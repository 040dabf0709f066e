//! Stops the server or the processes that a killed program or a killed server left behind, before the next server
//! starts. The caller holds the lock, so no running process on the data directory has an owner.

mod identity;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::error::Error;
use super::pidfile;

/// The time for a fast shutdown of such a server ...
const FAST: Duration = Duration::from_secs(3);
/// ... and for all attempts, including an immediate shutdown.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for the processes of a dead server.
const STRAYS: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Returns once no process runs on `data_dir`. `cluster_name` is the server setting of that name.
pub(super) fn clear(data_dir: &Path, cluster_name: &str, progress: &dyn Fn(&str)) -> Result<(), Error> {
    end_server(data_dir, progress)?;
    end_strays(cluster_name);
    Ok(())
}

fn end_server(data_dir: &Path, progress: &dyn Fn(&str)) -> Result<(), Error> {
    let began = Instant::now();
    let mut sent = None;
    while let Some(pid) = living_server(data_dir)? {
        // The kernel may have sent the same signal already, which does no harm.
        let due = if began.elapsed() < FAST { Signal::INT } else { Signal::QUIT };
        if sent.is_none() {
            progress(&format!("waiting for the PostgreSQL of an earlier run (process {pid}) to stop ..."));
        }
        if sent != Some(due) {
            // The signal fails if the process has just ended or belongs to another user; the loop finds out which.
            let _ = kill_process(pid, due);
            sent = Some(due);
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::LeftBehind { pid: pid.as_raw_nonzero().get(), data_dir: data_dir.to_owned() });
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Returns the server that `postmaster.pid` names, if it is alive.
///
/// A file that names a dead process is kept: `PostgreSQL` handles it and first checks the shared memory it names.
/// The file is removed if the process id now belongs to another program, which `PostgreSQL` would take for a running
/// server.
fn living_server(data_dir: &Path) -> Result<Option<Pid>, Error> {
    let path = pidfile::path(data_dir);
    let Some(file) = pidfile::read(data_dir).map_err(Error::io("read", &path))? else {
        return Ok(None);
    };
    if test_kill_process(file.pid) == Err(Errno::SRCH) {
        return Ok(None);
    }
    if identity::is_server(file.pid, data_dir) {
        return Ok(Some(file.pid));
    }
    // It may have ended between the two checks, and another one may have started.
    let unchanged = matches!(
        pidfile::read(data_dir), Ok(Some(now)) if now.pid == file.pid
    );
    if unchanged {
        let _ = fs::remove_file(&path);
    }
    Ok(None)
}

/// Ends the children of a killed server. They exit on their own, but one in a long query only after the query, and
/// until then no new server starts. Their server would send them SIGQUIT after a crash.
fn end_strays(cluster_name: &str) {
    let title = format!("postgres: {cluster_name}: ");
    let began = Instant::now();
    let mut asked = Vec::new();
    loop {
        let strays = identity::titled(&title);
        if strays.is_empty() || began.elapsed() > STRAYS {
            return;
        }
        for pid in strays {
            if !asked.contains(&pid) {
                let _ = kill_process(pid, Signal::QUIT);
                asked.push(pid);
            }
        }
        thread::sleep(POLL);
    }
}
