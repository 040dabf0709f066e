//! `vestibule dev …`: further commands of a development build.

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Subcommand};
use serde::Serialize;

use super::Result;
use crate::config::{self, Maintenance};
use crate::dev;
use crate::dev::identity_provider::event::KINDS;
use crate::dev::identity_provider::remote;
use crate::telemetry::progress::Progress;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Print an `id_token` of the development identity provider
    ///
    /// The server must be running, because it issues the token.
    #[command(after_help = after_help!("Example:\n  vestibule dev token --email ada@example.com"))]
    Token(Token),
    /// Let the development identity provider report something about an account
    ///
    /// The provider signs a security event, and it is sent to the server, which must be running, as a provider would.
    #[command(after_help = after_help!("Example:\n  vestibule dev event account-disabled --email ada@example.com"))]
    Event(Event),
    /// Fill the development database with made-up users
    ///
    /// Each run adds this many users. The server may be running, but sign-ins can fail meanwhile; otherwise the command
    /// starts the database. With `DATABASE_URL`, it fills that database.
    #[command(after_help = after_help!("Example:\n  vestibule dev seed --users 1000000"))]
    Seed(Seed),
}

#[derive(Args)]
pub(super) struct Seed {
    /// Number of users; they have 1.3 identities each, and one in ten has a session
    #[arg(long, default_value = "10000", value_parser = clap::value_parser!(i32).range(1..))]
    users: i32,
}

#[derive(Args, Serialize)]
pub(super) struct Event {
    /// Kind of event
    #[arg(value_parser = PossibleValuesParser::new(KINDS.map(|(kind, _)| kind)))]
    kind: String,
    /// E-mail address of the account
    #[arg(long)]
    email: Option<String>,
    /// Subject; derived from the e-mail address by default
    #[arg(long)]
    sub: Option<String>,
    /// The provider's reason, such as `hijacking` or `bulk-account`
    #[arg(long)]
    reason: Option<String>,
    /// Name of the development provider, if the setting `idp.name` is not to be read
    #[arg(long)]
    #[serde(skip)]
    provider: Option<String>,
}

#[derive(Args, Serialize)]
pub(super) struct Token {
    /// E-mail address of the user
    #[arg(long, required_unless_present = "sub")]
    email: Option<String>,
    /// Subject; derived from the e-mail address by default
    #[arg(long)]
    sub: Option<String>,
    /// Name; derived from the e-mail address by default
    #[arg(long)]
    name: Option<String>,
    /// Mark the e-mail address as not verified
    #[arg(long = "unverified", action = ArgAction::SetFalse)]
    verified: bool,
    /// Audience; the development client by default
    #[arg(long)]
    aud: Option<String>,
    /// Issue a token that expired an hour ago
    #[arg(long)]
    expired: bool,
    /// Nonce for the token
    #[arg(long)]
    nonce: Option<String>,
}

pub(super) fn run(command: Command) -> Result {
    match command {
        Command::Token(token) => print(&token),
        Command::Event(event) => send(&event),
        Command::Seed(seed) => fill(seed.users),
    }
}

fn fill(users: i32) -> Result {
    let (figment, _development) = dev::prepare_beside(config::figment())?;
    let settings = Maintenance::read(figment)?;
    super::block_on(1, async move {
        let mut progress = Progress::new("users", u64::try_from(users).ok());
        let added = dev::seed(&settings.figment, users, |users| {
            progress.add(users.unsigned_abs(), users.unsigned_abs());
        })
        .await?;
        let took = progress.finish();
        let rows = added.users + added.identities + added.sessions + added.events;
        let milliseconds = i64::try_from(took.as_millis()).unwrap_or(i64::MAX).max(1);
        say!(
            "{} users, {} identities, {} sessions, {} events in {:.1} s: {} rows/s",
            added.users,
            added.identities,
            added.sessions,
            added.events,
            took.as_secs_f64(),
            rows * 1000 / milliseconds
        );
        Ok(())
    })
}

fn print(token: &Token) -> Result {
    let port: u16 = config::figment().extract_inner("port")?;
    super::block_on(1, async move {
        say!("{}", remote::mint(port, token).await?);
        Ok(())
    })
}

fn send(event: &Event) -> Result {
    let figment = config::figment();
    let port: u16 = figment.extract_inner("port")?;
    let provider = event.provider.clone().or_else(|| figment.extract_inner("idp.name").ok());
    let provider = provider.unwrap_or_else(|| "idp".into());
    super::block_on(1, async {
        remote::send_event(port, &provider, event).await?;
        say!("202: the event {} of {provider} is stored and applied", event.kind);
        say!("{}", look(port, event.email.as_deref()));
        Ok(())
    })
}

/// Says where the effects of an event are seen.
fn look(port: u16, email: Option<&str>) -> String {
    let admin = format!("http://127.0.0.1:{port}/admin");
    match email {
        Some(email) => {
            let email: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
            format!("Look at the user's page: {admin}/users?q={email}")
        }
        None => format!("Look at the audit: {admin}/audit"),
    }
}
