//! `vestibule dev …`: what a developer's build can do besides.

use clap::{Args, Subcommand};

use super::Result;
use crate::config;
use crate::dev::identity_provider::remote;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Print an `id_token` of the development identity provider
    ///
    /// The server must be running: it is asked for the token.
    #[command(after_help = "Example:\n  vestibule dev token --email ada@example.com")]
    Token(Token),
}

#[derive(Args)]
pub(super) struct Token {
    /// E-mail address of whom the token is for
    #[arg(long, required_unless_present = "sub")]
    email: Option<String>,
    /// Subject; made from the e-mail address unless given
    #[arg(long)]
    sub: Option<String>,
    /// Name; made from the e-mail address unless given
    #[arg(long)]
    name: Option<String>,
    /// Say that the e-mail address is not verified
    #[arg(long)]
    unverified: bool,
    /// Audience; the development client unless given
    #[arg(long)]
    aud: Option<String>,
    /// Make a token that expired an hour ago
    #[arg(long)]
    expired: bool,
    /// Nonce to put into the token
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
    }
}

fn print(token: &Token) -> Result {
    let port: u16 = config::figment().extract_inner("port")?;
    super::block_on(1, async move {
        println!("{}", remote::mint(port, &token.parameters()).await?);
        Ok(())
    })
}
