//! `vestibule webhooks …`: the receivers of messages about users.

use std::error::Error;

use clap::{Args, Subcommand};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::Replayed;
use super::sender::Sender;
use super::store::{self, Which};
use crate::config::Webhook;
use crate::database::Database;
use crate::domain::Author;
use crate::domain::text::one_line;

/// The messages that `list` prints of one webhook.
const LISTED: i64 = 1000;

#[derive(Subcommand)]
pub enum Command {
    /// List the webhooks with their queues, or the failed messages of a webhook
    ///
    /// The first line has the names of the columns, which are separated by tabs.
    #[command(after_help = after_help!("Examples:
  vestibule webhooks list
  vestibule webhooks list shop"))]
    List {
        /// Name of a webhook
        name: Option<String>,
    },
    /// Send a signed `webhook.test` message now, and print the answer
    #[command(after_help = "Example:
  vestibule webhooks test shop

Exit codes: 0 accepted, 1 not accepted or failed (one line states the reason), 2 wrong arguments.")]
    Test {
        /// Name of the webhook
        name: String,
    },
    /// Let running instances send messages again that were not accepted
    #[command(after_help = after_help!("Examples:
  vestibule webhooks replay shop --all
  vestibule webhooks replay shop 019a1b2c-0000-7000-8000-000000000001"))]
    Replay(Replay),
}

#[derive(Args)]
pub struct Replay {
    /// Name of the webhook
    name: String,
    /// The message, by the id that `list` prints
    #[arg(required_unless_present = "all")]
    message: Option<Uuid>,
    /// All messages that are parked or wait for their next attempt
    #[arg(long, conflicts_with = "message")]
    all: bool,
}

impl Command {
    /// Runs a command on these webhooks. Only `test` needs no database.
    pub async fn run(
        self,
        webhooks: Vec<Webhook>,
        database: impl AsyncFnOnce() -> Result<Database, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        match self {
            Self::List { name: None } => list(&database().await?, &webhooks).await,
            Self::List { name: Some(name) } => {
                messages(&known(&webhooks, &name, database).await?, &name).await
            }
            Self::Test { name } => {
                let webhook = webhooks.into_iter().find(|webhook| webhook.name == name);
                test(webhook.ok_or_else(|| unknown(&name))?).await
            }
            Self::Replay(Replay { name, message, .. }) => {
                let database = known(&webhooks, &name, database).await?;
                let replayed =
                    super::replay(&database, &name, message, Author::COMMAND_LINE).await?;
                let Replayed { due, of } = replayed.unwrap_or_default();
                if let (Some(message), 0) = (message, due) {
                    let remedy = format!("see `vestibule webhooks list {name}`");
                    return Err(format!(
                        "the webhook `{name}` has no message {message} that waits for a retry; {remedy}"
                    )
                    .into());
                }
                match message {
                    Some(_) => say!("the message is due now; an instance sends it"),
                    None => say!("messages due now: {due} of {of}; an instance sends them"),
                }
                Ok(())
            }
        }
    }
}

/// Opens the database, if a webhook of that name is configured or is known there.
async fn known(
    webhooks: &[Webhook],
    name: &str,
    database: impl AsyncFnOnce() -> Result<Database, Box<dyn Error>>,
) -> Result<Database, Box<dyn Error>> {
    let database = database().await?;
    if webhooks.iter().any(|webhook| webhook.name == name) || store::exists(&database, name).await?
    {
        Ok(database)
    } else {
        Err(unknown(name).into())
    }
}

fn unknown(name: &str) -> String {
    format!("the webhook `{name}` is not configured; add `[default.webhooks.{name}]`")
}

async fn list(database: &Database, webhooks: &[Webhook]) -> Result<(), Box<dyn Error>> {
    let summaries = store::summaries(database, &[]).await?;
    say!("name\thost\twaiting\toldest\tparked\tlast failure");
    for webhook in webhooks
        .iter()
        .filter(|one| !summaries.iter().any(|summary| summary.name == one.name))
    {
        say!(
            "{}\t{}\t0\t-\t0\tno instance has started with it",
            webhook.name,
            webhook.host()
        );
    }
    for summary in summaries {
        let host = webhooks
            .iter()
            .find(|webhook| webhook.name == summary.name)
            .map(Webhook::host);
        let host = host.unwrap_or_else(|| "not configured".into());
        let oldest = at(summary.oldest_at);
        let failure = summary.failure.unwrap_or_default();
        say!(
            "{}\t{host}\t{}\t{oldest}\t{}\t{failure}",
            summary.name,
            summary.waiting,
            summary.parked
        );
    }
    Ok(())
}

async fn messages(database: &Database, name: &str) -> Result<(), Box<dyn Error>> {
    say!("message\ttype\tuser\tattempts\tnext attempt\tlast failure");
    for message in store::unaccepted(database, name, Which::Failed, 0, LISTED).await? {
        let next = message
            .next_attempt_at
            .map_or_else(|| "parked".into(), |next| at(Some(next)));
        say!(
            "{}\t{}\t{}\t{}\t{next}\t{}",
            message.message_id,
            message.kind,
            message.user_id,
            message.attempts,
            message.failure.unwrap_or_default()
        );
    }
    Ok(())
}

fn at(time: Option<OffsetDateTime>) -> String {
    let text = time.and_then(|time| time.to_utc().truncate_to_second().format(&Rfc3339).ok());
    text.unwrap_or_else(|| "-".into())
}

async fn test(webhook: Webhook) -> Result<(), Box<dyn Error>> {
    let sender = Sender::new(webhook)?;
    match sender.test().await {
        Ok(accepted) => {
            say!(
                "accepted: the answer is {}{}",
                accepted.status,
                shown(&accepted.body)
            );
            Ok(())
        }
        Err(failed) => Err(format!("not accepted: {failed}{}", shown(&failed.body)).into()),
    }
}

/// Returns the beginning of an answer in one line. It comes from outside, so it must not control
/// the terminal.
fn shown(body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
    let text = one_line(&text);
    if text.trim().is_empty() {
        String::new()
    } else {
        format!(": {}", text.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_cannot_control_the_terminal() {
        assert_eq!(
            shown(b"no\x1b[2Jthing\r\nhere \xff"),
            ": no [2Jthing  here \u{fffd}"
        );
        assert_eq!(shown(b"\r\n"), "");
        assert_eq!(shown(&[b'x'; 1000]).len(), 202);
    }
}
