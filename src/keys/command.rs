//! `vestibule keys …`: the keys that sign access tokens.

use std::error::Error;

use clap::{Args, Subcommand};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::rotation::Rotation;

#[derive(Subcommand)]
pub enum Command {
    /// Print the keys: id, state and times (UTC)
    #[command(after_help = after_help!("States:
  next       published; will sign later
  signing    signs new tokens
  verifying  no longer signs, but stays published for a day, in which its last token expires
  retired    revoked; its tokens are refused
  expired    all its tokens have expired; a running instance deletes it

The last column names the `secret_key` that decrypts the key:
  current   the one in the settings, or the first of the two
  previous  the second of the two; an instance that starts encrypts the key with the first one
  another   none in the settings

Example:
  vestibule keys list"))]
    List,
    /// Publish the next key early, or replace all keys in an emergency
    ///
    /// Running instances load the change within 30 seconds.
    #[command(after_help = after_help!("Examples:
  vestibule keys rotate        publish a new key now, which signs in `keys.announce` seconds
  vestibule keys rotate --now  replace a leaked key: all access tokens issued so far become invalid, and
                               clients have to refresh"))]
    Rotate(RotateArguments),
}

#[derive(Args)]
pub struct RotateArguments {
    /// Let the new key sign at once and retire all others, with the tokens that they signed
    #[arg(long)]
    now: bool,
    /// Retire the others even if they were encrypted with another `secret_key`
    #[arg(long, requires = "now")]
    new_secret_key: bool,
}

impl Command {
    pub async fn run(self, rotation: &Rotation) -> Result<(), Box<dyn Error>> {
        match self {
            Self::List => {}
            Self::Rotate(RotateArguments {
                now: true,
                new_secret_key,
            }) => {
                rotation.replace_all(new_secret_key).await?;
            }
            Self::Rotate(_) if rotation.rotate().await? => {}
            Self::Rotate(_) => {
                let already = "the next key is already published (see `vestibule keys list`); use `--now` to replace all keys";
                return Err(already.into());
            }
        }
        print(rotation).await
    }
}

async fn print(rotation: &Rotation) -> Result<(), Box<dyn Error>> {
    say!(
        "{:43}  {:9}  {:20}  {:20}  {:20}  SECRET KEY",
        "KID",
        "STATE",
        "CREATED",
        "SIGNS FROM",
        "PUBLISHED UNTIL"
    );
    let Some(stored) = rotation.stored().await? else {
        return Ok(());
    };
    for key in stored.keys {
        let state = key.life.state(stored.now);
        let created = format(key.life.created_at)?;
        let signs = format(key.life.signs_from)?;
        let until = key
            .life
            .published_until()
            .map_or_else(|| Ok("-".into()), format)?;
        let sealed_by = rotation.sealed_by(&key);
        say!(
            "{:43}  {state:9}  {created:20}  {signs:20}  {until:20}  {sealed_by}",
            key.kid
        );
    }
    Ok(())
}

fn format(at: OffsetDateTime) -> Result<String, time::error::Format> {
    at.to_utc().truncate_to_second().format(&Rfc3339)
}
