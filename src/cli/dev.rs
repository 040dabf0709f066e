//! `vestibule dev …`: further commands of a development build.

use std::time::Duration;

use clap::{Args, Subcommand};
use figment::Figment;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode};

use super::Result;
use crate::config;
use crate::dev;
use crate::dev::identity_provider::event::Report;
use crate::dev::identity_provider::mint::MintRequest;
use crate::telemetry::progress::Progress;

const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Subcommand)]
pub(super) enum Command {
    /// Print an `id_token` of the development identity provider
    #[command(after_help = after_help!("Example:\n  vestibule dev token --email ada@example.com"))]
    Token(Token),
    /// Let the development identity provider report something about an account
    ///
    /// Signs a security event with the provider's key, and sends it to the server, which must be
    /// running.
    #[command(after_help = after_help!("Example:\n  vestibule dev event account-disabled --email ada@example.com"))]
    Event(Event),
    /// Fill the development database with made-up users
    ///
    /// Each run adds this many users. The server may be running, but sign-ins can fail meanwhile;
    /// otherwise the command starts the database. With `DATABASE_URL`, it fills that database.
    #[command(after_help = after_help!("Example:\n  vestibule dev seed --users 1000000"))]
    Seed(Seed),
}

#[derive(Args)]
pub(super) struct Seed {
    /// Number of users; they have 1.3 identities each, and one in ten has a session
    #[arg(long, default_value = "10000", value_parser = clap::value_parser!(i32).range(1..))]
    users: i32,
}

#[derive(Args)]
pub(super) struct Event {
    #[command(flatten)]
    report: Report,
    /// Name of the development provider, if the setting `idp.name` is not to be read
    #[arg(long)]
    provider: Option<String>,
}

#[derive(Args)]
pub(super) struct Token {
    #[command(flatten)]
    request: MintRequest,
    /// Mark the e-mail address as not verified
    #[arg(long)]
    unverified: bool,
    /// Issue a token that expired an hour ago
    #[arg(long)]
    expired: bool,
}

pub(super) fn run(command: Command) -> Result {
    match command {
        Command::Token(token) => print(token),
        Command::Event(event) => send(event),
        Command::Seed(seed) => fill(seed.users),
    }
}

fn print(token: Token) -> Result {
    let Token {
        mut request,
        unverified,
        expired,
    } = token;
    request.verified = unverified.then(|| "false".into());
    request.expired = expired.then(|| "true".into());
    say!("{}", dev::provider(&config::figment())?.mint(&request)?);
    Ok(())
}

fn fill(users: i32) -> Result {
    dev::refuse_release(&config::figment())?;
    super::with_settings(|settings| super::block_on(1, seed(settings.figment, users)))
}

async fn seed(figment: Figment, users: i32) -> Result {
    let mut progress = Progress::new("users", u64::try_from(users).ok());
    let added = dev::seed(&figment, users, |users| {
        progress.add(users.unsigned_abs(), users.unsigned_abs());
    });
    let added = added.await?;
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
}

fn send(event: Event) -> Result {
    let figment = config::figment();
    let server = dev::base(&figment);
    let provider = event
        .provider
        .unwrap_or_else(|| dev::provider_name(&figment));
    let token = dev::provider(&figment)?.report(&event.report)?;
    super::block_on(1, async {
        // A proxy would look for the server on its own machine.
        let client = Client::builder().no_proxy().timeout(TIMEOUT).build()?;
        let request = client.post(format!("{server}/api/v1/providers/{provider}/events"));
        let request = request
            .header(CONTENT_TYPE, "application/secevent+jwt")
            .body(token);
        let answer = request.send().await;
        let answer = answer.map_err(|_| {
            format!("no server answers at {server}; start it with `cargo run` first")
        })?;
        let status = answer.status();
        if status != StatusCode::ACCEPTED {
            return Err(format!(
                "the service answers {}: {}",
                status.as_u16(),
                answer.text().await?
            )
            .into());
        }
        let Report { kind, email, .. } = &event.report;
        say!("202: the event {kind} of {provider} is stored and applied");
        say!("{}", look(&server, email.as_deref()));
        Ok(())
    })
}

/// Says where the effects of an event are seen.
fn look(server: &str, email: Option<&str>) -> String {
    match email {
        Some(email) => {
            let email: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
            format!("Look at the user's page: {server}/admin/users?q={email}")
        }
        None => format!("Look at the audit: {server}/admin/audit"),
    }
}
