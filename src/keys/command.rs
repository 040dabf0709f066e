//! `vestibule keys …`: the keys that sign access tokens.

use clap::{Args, Subcommand};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::manage::{self, Key, Rotate};
use crate::cli::{Result, after_help, block_on};
use crate::config::{self, Maintenance};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print the keys: id, state and times (UTC)
    #[command(after_help = after_help!("States:
  next       published, signs later
  signing    signs
  verifying  signs no more, published until the last token that it signed has expired
  retired    withdrawn; its tokens are refused
  expired    no valid token of it is left; a running instance deletes it

Example:
  vestibule keys list"))]
    List,
    /// Announce the next key early, or replace all keys in an emergency
    ///
    /// Running instances load the change within 30 seconds.
    #[command(after_help = after_help!("Examples:
  vestibule keys rotate        a new key is published now and signs in `keys.announce` seconds
  vestibule keys rotate --now  a key has leaked: every access token issued until now becomes invalid,
                               and clients refresh theirs"))]
    Rotate(RotateArguments),
}

#[derive(Args)]
pub(crate) struct RotateArguments {
    /// Let the new key sign at once and retire all others, with the tokens that they signed
    #[arg(long)]
    now: bool,
    /// Retire the others even if they were encrypted with another `secret_key`
    #[arg(long, requires = "now")]
    new_secret_key: bool,
}

pub(crate) fn run(command: Command) -> Result {
    let settings = Maintenance::read(config::figment())?;
    block_on(1, async move {
        match command {
            Command::List => print(&manage::list(&settings).await?),
            Command::Rotate(arguments) => {
                let how = if arguments.now {
                    Rotate::Now { any_secret: arguments.new_secret_key }
                } else {
                    Rotate::Announce
                };
                let already =
                    "the next key is announced already, see `vestibule keys list`; `--now` replaces all keys";
                print(&manage::rotate(&settings, how).await?.ok_or(already)?)
            }
        }
    })
}

fn print(keys: &[Key]) -> Result {
    println!("{:43}  {:9}  {:20}  {:20}  PUBLISHED UNTIL", "KID", "STATE", "CREATED", "SIGNS FROM");
    for key in keys {
        let (created, signs) = (told(key.created_at)?, told(key.signs_from)?);
        let until = key.published_until.map_or_else(|| Ok("-".into()), told)?;
        println!("{:43}  {:9}  {created:20}  {signs:20}  {until}", key.kid, key.state);
    }
    Ok(())
}

fn told(at: OffsetDateTime) -> std::result::Result<String, time::error::Format> {
    at.to_utc().truncate_to_second().format(&Rfc3339)
}
