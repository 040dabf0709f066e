//! `/mint`: issues a token for a given account, without a browser. It follows no standard, and no real provider would
//! offer it; `curl` uses it, and `vestibule dev token` issues the same tokens.

use clap::Args;
use rocket::form::{self, Strict};
use rocket::response::status::BadRequest;
use rocket::{FromForm, State, get};

use super::account::DevAccount;
use super::{IdentityProvider, TOKEN_TTL, describe};
use crate::clock;

/// The request for a token, in a query or on the command line.
#[derive(FromForm, Args)]
pub struct MintRequest {
    /// E-mail address of the user
    #[arg(long, required_unless_present = "sub")]
    email: Option<String>,
    /// Subject; derived from the e-mail address by default
    #[arg(long)]
    sub: Option<String>,
    /// Name; derived from the e-mail address by default
    #[arg(long)]
    name: Option<String>,
    /// `true` or `false`, as is `expired`. The command line has flags for both.
    #[arg(skip)]
    pub verified: Option<String>,
    /// Audience; the development client by default
    #[arg(long)]
    aud: Option<String>,
    #[arg(skip)]
    pub expired: Option<String>,
    /// Nonce for the token
    #[arg(long)]
    nonce: Option<String>,
}

/// Issues a token. An unknown parameter is an error, because a misspelt one would change nothing.
#[get("/mint?<request..>")]
pub(super) fn mint(
    provider: &State<IdentityProvider>,
    request: form::Result<'_, Strict<MintRequest>>,
) -> Result<String, BadRequest<String>> {
    let token = request
        .map_err(|errors| describe(&errors))
        .and_then(|request| provider.mint(&request));
    // Without a line break: a script that reads the token from this answer or from a file sends all
    // of it.
    token.map_err(|why| BadRequest(why + "\n"))
}

impl IdentityProvider {
    pub fn mint(&self, request: &MintRequest) -> Result<String, String> {
        let MintRequest {
            email,
            sub,
            name,
            verified,
            aud,
            expired,
            nonce,
        } = request;
        let [email, subject, name] =
            [email, sub, name].map(|text| text.as_deref().unwrap_or_default());
        let account = DevAccount::new(
            email,
            subject,
            name,
            switch("verified", verified.as_deref(), true)?,
        )?;
        let age = if switch("expired", expired.as_deref(), false)? {
            2 * TOKEN_TTL
        } else {
            0
        };
        let audience = aud.as_ref().unwrap_or(&self.client_id);
        Ok(self.issue(&account, audience, nonce.as_deref(), clock::now() - age))
    }
}

fn switch(name: &str, text: Option<&str>, default: bool) -> Result<bool, String> {
    text.map_or(Ok(default), |text| {
        text.parse()
            .map_err(|_| format!("`{name}` must be true or false"))
    })
}
