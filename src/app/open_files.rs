//! The limit of open files, which limits connections. A shell's usual limit of 1024 would stop the service long
//! before its memory does; without a limit, idle connections would use all memory.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Enough for all the clients that one instance can serve.
const ENOUGH: u64 = 65_536;

/// Sets the limit to what is enough, or as near to it as the system allows, and logs it.
pub fn limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let (before, allowed) = (limit.current, limit.maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH)));
    limit.current = Some(allowed);
    // The system may refuse to set a limit, even to its current value (`deploy/vestibule.service`).
    let set = if before == limit.current { Ok(()) } else { setrlimit(Resource::Nofile, limit) };
    match set {
        Ok(()) => tracing::info!(limit = allowed, before, "limit of open files, and so of connections"),
        Err(error) => tracing::warn!(
            limit = before, cause = %error,
            "the limit of open files, and so of connections, cannot be raised; set it before the start (LimitNOFILE, ulimit -n)"
        ),
    }
}
