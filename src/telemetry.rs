//! Logs, one line per request to standard error, measurements from the events of libraries, and the
//! progress of long commands.

pub mod database;
pub mod lines;
pub mod otlp;
pub(crate) mod progress;

use std::io::{self, IsTerminal};
use std::panic;
use std::sync::OnceLock;

use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use self::lines::Pending;
use self::otlp::Logs;
use crate::config::{LogFormat, LogLevel};

/// The log of the service could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the operating system refuses the thread that writes the log: {0}")]
    Thread(#[from] io::Error),
    #[error(transparent)]
    Otlp(#[from] otlp::Error),
}

/// The log of the service. When it is dropped, it waits for a limited time until all lines are sent
/// and written.
#[derive(Debug)]
#[must_use = "the process ends after it"]
pub struct Log {
    sent: Option<Logs>,
    /// Dropped last, so that a warning about lines that were not sent is still written.
    _written: Pending,
}

/// Starts logging for a command, which waits for the reader of its lines. A second call changes
/// nothing.
pub fn start(format: LogFormat, level: LogLevel) {
    log_to(io::stderr, None, format, level);
}

/// Starts logging for the service, which does not wait for a reader.
pub fn start_serving(format: LogFormat, level: LogLevel) -> Result<Log, Error> {
    let log = Log {
        sent: Logs::open()?,
        _written: lines::start()?,
    };
    log_to(|| lines::Writer, log.sent.as_ref(), format, level);
    Ok(log)
}

/// The targets whose lines are logged.
static LOGGED: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Changes the level of the log from now on.
pub fn set_level(level: LogLevel) {
    if let Some(logged) = LOGGED.get() {
        // It fails only if there is no log any more.
        let _ = logged.reload(targets(level));
    }
}

fn log_to<W>(writer: W, sent: Option<&Logs>, format: LogFormat, level: LogLevel)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (ours, logged) = reload::Layer::new(targets(level));
    // Rocket's macros log under our own modules, for example each failed guard.
    let ours = ours.and(filter_fn(|metadata| !metadata.target().ends_with("::_")));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_target(false);
    // Otherwise it would report errors of standard error on standard error, and panic.
    let lines = lines.log_internal_errors(false);
    let lines = match format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
    };
    let lines = lines.and_then(sent.map(Logs::layer)).with_filter(ours);
    if tracing_subscriber::registry()
        .with(lines)
        .with(database::layer())
        .try_init()
        .is_ok()
    {
        // Only the first call comes here.
        let _ = LOGGED.set(logged);
        panic::set_hook(Box::new(|panic| {
            // The message may contain user data, so only the place is logged.
            let place = panic
                .location()
                .map_or_else(|| "unknown".into(), ToString::to_string);
            tracing::error!(place, "panic");
        }));
    }
}

fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    Targets::new()
        // Less important lines of other crates could hold data of users.
        .with_default(level.min(LevelFilter::WARN))
        .with_target("vestibule", level)
        // Rocket's own lines repeat ours, and cost as much as a request.
        .with_target("rocket", LevelFilter::OFF)
        // In an outage, each connection that goes back to its pool would be a line.
        .with_target("sqlx_core::pool::connection", LevelFilter::OFF)
        // It logs the value of an unknown parameter of DATABASE_URL, such as a misspelt `password`.
        .with_target("sqlx_postgres::options", LevelFilter::OFF)
}
