//! What a killed program or a killed server leaves behind: a server nobody
//! owns, or processes of a server that is gone. They are made to leave before
//! the next server starts. Called with the lock held, so nothing that runs on
//! the data directory has an owner.

mod identity;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::error::Error;
use super::pidfile;

/// How long a server left behind may take for a fast shutdown ...
const FAST: Duration = Duration::from_secs(3);
/// ... and altogether, with an immediate one.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the processes of a dead server may take.
const STRAYS: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Returns when nothing runs on `data_dir` any more. `cluster_name` is the
/// server setting of that name.
pub(super) fn clear(data_dir: &Path, cluster_name: &str, progress: &dyn Fn(&str)) -> Result<(), Error> {
    end_server(data_dir, progress)?;
    end_strays(cluster_name);
    Ok(())
}

fn end_server(data_dir: &Path, progress: &dyn Fn(&str)) -> Result<(), Error> {
    let began = Instant::now();
    let mut sent = None;
    while let Some(pid) = living_server(data_dir)? {
        // Where the kernel has told it already, a repetition does no harm.
        let due = if began.elapsed() < FAST { Signal::INT } else { Signal::QUIT };
        if sent.is_none() {
            progress(&format!("waiting for the PostgreSQL of an earlier run (process {pid}) to stop ..."));
        }
        if sent != Some(due) {
            // An error means that it has just gone, or that it is not ours to
            // end; the loop finds out which.
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

/// The server that `postmaster.pid` names, if it lives.
///
/// A file that names a dead process is left alone: `PostgreSQL` deals with it,
/// and looks at the shared memory it names first. It is removed when the
/// process id has passed to something else, which `PostgreSQL` would take for
/// a running server.
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
    // It may have ended between the two questions and another one begun.
    let unchanged = matches!(
        pidfile::read(data_dir), Ok(Some(now)) if now.pid == file.pid
    );
    if unchanged {
        let _ = fs::remove_file(&path);
    }
    Ok(None)
}

/// The children of a killed server leave by themselves, but one in the middle
/// of a long query only when it is done, and until then no new server starts.
/// SIGQUIT is what their server would send them after a crash.
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
