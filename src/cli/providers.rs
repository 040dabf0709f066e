//! `vestibule providers …`: what an operator does at identity providers.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Result;
use crate::app::event_stream::{self, Access, Task};
use crate::config::{self, Config};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Register the address for a provider's security events
    ///
    /// Google and providers with Shared Signals are told by their API. For Apple and Facebook, the command prints what to
    /// enter where.
    #[command(after_help = after_help!(
        "Examples:\n  vestibule providers register-events google --key-file service-account.json\n  \
         vestibule providers register-events google --key-file service-account.json --verify"
    ))]
    RegisterEvents(RegisterEvents),
}

#[derive(Args)]
pub(super) struct RegisterEvents {
    /// Name of the provider
    name: String,
    /// JSON key of a service account with the role RISC Configuration Admin, for Google
    #[arg(long, conflicts_with = "token_file")]
    key_file: Option<PathBuf>,
    /// File with the token for the provider's API, for other providers
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Have the provider send a verification event
    #[arg(long, conflicts_with = "status")]
    verify: bool,
    /// Print what is registered
    #[arg(long)]
    status: bool,
}

pub(super) fn run(Command::RegisterEvents(arguments): Command) -> Result {
    let config = Config::read(config::figment())?;
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let access = match (&arguments.key_file, &arguments.token_file) {
        (Some(path), _) => {
            let key = Access::key(&read(path)?);
            Some(key.map_err(|why| format!("{} {why}", path.display()))?)
        }
        (None, Some(path)) => Some(Access::token(&String::from_utf8(read(path)?)?)),
        (None, None) => None,
    };
    let task = match (arguments.verify, arguments.status) {
        (true, _) => Task::Verify,
        (_, true) => Task::Status,
        _ => Task::Register,
    };
    super::block_on(1, async move {
        say!("{}", event_stream::run(&config, &arguments.name, task, access).await?);
        Ok(())
    })
}
