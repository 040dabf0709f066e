//! The command line, one file a subcommand.
//!
//! Exit codes: 0 when all went well, 1 when it did not (one line on standard error says why),
//! 2 when the arguments are wrong.

mod check;
#[cfg(all(feature = "dev", debug_assertions))]
mod dev;
mod health;
mod keys;
mod migrate;
#[cfg(all(feature = "dev", debug_assertions))]
mod progress;
mod prune;
mod serve;
mod staff;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::LogFormat;
use crate::telemetry;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// Sign in with an identity provider's token.
#[derive(Parser)]
#[command(
    name = "vestibule",
    version,
    after_help = "Exit codes: 0 done, 1 failed (one line says why), 2 wrong arguments."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API (what is done without a command, too)
    Serve,
    /// Bring the database's schema up to date, and stop
    #[command(after_help = "Example:\n  DATABASE_URL=postgres://vestibule@db/vestibule vestibule migrate")]
    Migrate,
    /// Look whether everything is set up as the service needs it: database, schema, keys, providers
    #[command(after_help = check::HELP)]
    Check,
    /// Ask the service that runs on this machine whether it is ready
    #[command(after_help = health::HELP)]
    Health,
    /// Delete expired sessions and old events now (the service does it by itself, every ten minutes)
    Prune,
    /// The keys that sign access tokens
    #[command(subcommand)]
    Keys(keys::Command),
    /// Who may use the admin pages
    #[command(subcommand)]
    Staff(staff::Command),
    /// Things for development
    #[cfg(all(feature = "dev", debug_assertions))]
    #[command(subcommand)]
    Dev(dev::Command),
}

/// Runs the program.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let command = arguments.command.unwrap_or(Command::Serve);
    if !matches!(command, Command::Serve) {
        // Whoever gives a command reads what it says.
        telemetry::start(LogFormat::Text);
    }
    let done = match command {
        Command::Serve => serve::run(),
        Command::Migrate => migrate::run(),
        Command::Check => check::run(),
        Command::Health => health::run(),
        Command::Prune => prune::run(),
        Command::Keys(command) => keys::run(command),
        Command::Staff(command) => staff::run(command),
        #[cfg(all(feature = "dev", debug_assertions))]
        Command::Dev(command) => dev::run(command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vestibule: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a future on as many threads as `workers` says.
fn block_on(workers: usize, future: impl Future<Output = Result>) -> Result {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers.max(1))
        .enable_all()
        .build()?
        .block_on(future)
}
