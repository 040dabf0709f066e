//! Logins that PostgreSQL refuses while the service runs, because the password, the role or the
//! database was changed. Requests get 503 until it accepts one again, and the log says so every
//! half minute.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock;

/// Time between two lines in the log, in seconds.
const EVERY: i64 = 30;

/// Time of the latest line, in seconds since the epoch.
static SAID: AtomicI64 = AtomicI64::new(i64::MIN);

/// Returns `true` for `invalid_authorization_specification`, `invalid_password`,
/// `invalid_catalog_name`, and `object_not_in_prerequisite_state`, the code for a database with
/// `ALLOW_CONNECTIONS false` (PostgreSQL, appendix A).
pub(super) fn is_refused(code: &str) -> bool {
    matches!(code, "28000" | "28P01" | "3D000" | "55000")
}

/// Logs the refusal, at most once in [`EVERY`] seconds.
pub(super) fn tell(cause: &str) {
    let now = clock::now();
    let due = |said: i64| (now.saturating_sub(said) >= EVERY).then_some(now);
    if SAID
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, due)
        .is_ok()
    {
        tracing::error!(
            cause,
            "the database refuses the service's login; requests get 503 until it accepts one. Correct the role or its \
             password in PostgreSQL, or DATABASE_URL, and restart after a change of DATABASE_URL"
        );
    }
}
