//! The limit of open files, which limits connections. A shell's usual limit of 1024 would stop the
//! service long before its memory does; without a limit, idle connections would use all memory.

use std::io::ErrorKind;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::time::sleep;

use crate::web::metrics::readings::open_files;

/// Enough for all the clients that an instance can serve.
const ENOUGH: u64 = 65_536;
/// The pause between two looks at the number of open files.
const PAUSE: Duration = Duration::from_secs(10);

/// Sets the limit to what is enough, or as near to it as the system allows, and logs it.
pub fn limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    let allowed = limit.maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    limit.current = Some(allowed);
    // The system may refuse to set a limit, even to its current value (`deploy/vestibule.service`).
    let set = if before == limit.current {
        Ok(())
    } else {
        setrlimit(Resource::Nofile, limit)
    };
    match set {
        Ok(()) => tracing::info!(
            limit = allowed,
            before,
            "limit of open files, and so of connections"
        ),
        Err(error) => tracing::warn!(
            limit = before, cause = %error,
            "the limit of open files, and so of connections, cannot be raised; set it before the start (LimitNOFILE, ulimit -n)"
        ),
    }
}

/// Logs a warning when nine in ten of the permitted files are open, and once more when they are
/// fewer again. At the limit itself nothing else is logged: new connections, including health
/// checks, wait in the operating system.
pub async fn watch() {
    let mut scarce = false;
    loop {
        sleep(PAUSE).await;
        let Some(limit) = getrlimit(Resource::Nofile).current else {
            return;
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let open = match open_files() {
            Ok(open) => open,
            // To count them takes a file.
            Err(error) if error.kind() != ErrorKind::NotFound => limit,
            Err(_) => return,
        };
        let before = scarce;
        scarce = open >= limit / 10 * 9;
        match (before, scarce) {
            (false, true) => {
                tracing::warn!(
                    open,
                    limit,
                    "open files, and so connections, are about to reach their limit"
                );
            }
            (true, false) => tracing::info!(open, limit, "open files are below their limit again"),
            _ => {}
        }
    }
}
