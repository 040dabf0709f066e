//! `vestibule dev …`: further commands of a development build.

use clap::{Args, Subcommand};

use uuid::Uuid;

use super::Result;
use crate::app;
use crate::config::{self, Maintenance};
use crate::dev::identity_provider::remote;
use crate::dev::{self, seed};
use crate::telemetry::progress::Progress;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Print an `id_token` of the development identity provider
    ///
    /// The server must be running, because it issues the token.
    #[command(after_help = after_help!("Example:\n  vestibule dev token --email ada@example.com"))]
    Token(Token),
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
    #[arg(long, default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    users: u32,
}

#[derive(Args)]
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
    #[arg(long)]
    unverified: bool,
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

impl Token {
    fn parameters(&self) -> Vec<(&'static str, &str)> {
        let texts = [
            ("email", &self.email),
            ("sub", &self.sub),
            ("name", &self.name),
            ("aud", &self.aud),
            ("nonce", &self.nonce),
        ];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
        let switches = [("verified", "false", self.unverified), ("expired", "true", self.expired)];
        let switches = switches.into_iter().filter_map(|(name, value, set)| set.then_some((name, value)));
        texts.chain(switches).collect()
    }
}

pub(super) fn run(command: Command) -> Result {
    match command {
        Command::Token(token) => print(&token),
        Command::Seed(seed) => fill(seed.users),
    }
}

fn fill(users: u32) -> Result {
    let (figment, _development) = dev::prepare_beside(config::figment())?;
    let settings = Maintenance::read(figment)?;
    let chance = Uuid::new_v4().as_u64_pair().0;
    super::block_on(1, async move {
        app::migrate(&settings.figment).await?;
        let mut progress = Progress::new("users", Some(u64::from(users)));
        let batches = seed::Seed::new(users, chance);
        let written =
            app::seed::fill(&settings.figment, batches, |users| progress.add(users as u64, users as u64))
                .await?;
        let took = progress.finish();
        say!(
            "{} users, {} identities, {} sessions, {} events in {:.1} s: {} rows/s",
            written.users,
            written.identities,
            written.sessions,
            written.events,
            took.as_secs_f64(),
            written.rows() * 1000 / usize::try_from(took.as_millis()).unwrap_or(usize::MAX).max(1)
        );
        Ok(())
    })
}

fn print(token: &Token) -> Result {
    let port: u16 = config::figment().extract_inner("port")?;
    super::block_on(1, async move {
        say!("{}", remote::mint(port, &token.parameters()).await?);
        Ok(())
    })
}
