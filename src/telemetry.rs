//! Logs: one line per request, to standard error.

use std::io::IsTerminal;
use std::panic;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging. Once per process; a second call changes nothing.
pub fn start() {
    let ours = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("vestibule", LevelFilter::INFO)
        // Rocket's own lines tell what ours tell, and cost as much as a request.
        .with_target("rocket", LevelFilter::OFF)
        .with_target("_", LevelFilter::OFF)
        // Tells the value of a parameter of DATABASE_URL that it does not know: a misspelt password's.
        .with_target("sqlx_postgres::options", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    if tracing_subscriber::registry().with(ours).with(lines).try_init().is_ok() {
        panic::set_hook(Box::new(|panic| {
            // The message may hold what was being worked on, so only the place is told.
            let place = panic.location().map_or_else(|| "unknown".into(), ToString::to_string);
            tracing::error!(place, "panic");
        }));
    }
}
