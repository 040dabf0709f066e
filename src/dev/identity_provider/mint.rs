//! `/mint`: issues a token for a given account, without a browser. It follows no standard, and no real provider would
//! offer it; `curl` and `vestibule dev token` use it.

use rocket::form::{self, Strict};
use rocket::response::status::BadRequest;
use rocket::{FromForm, State, get};

use super::account::DevAccount;
use super::{IdentityProvider, TOKEN_TTL, describe};
use crate::clock;

#[derive(FromForm)]
pub(super) struct MintRequest<'r> {
    email: Option<&'r str>,
    sub: Option<&'r str>,
    name: Option<&'r str>,
    verified: Option<&'r str>,
    aud: Option<&'r str>,
    expired: Option<&'r str>,
    nonce: Option<&'r str>,
}

/// Issues a token. An unknown parameter is an error, because a misspelt one would change nothing.
#[get("/mint?<request..>")]
pub(super) fn mint(
    provider: &State<IdentityProvider>,
    request: form::Result<'_, Strict<MintRequest<'_>>>,
) -> Result<String, BadRequest<String>> {
    let token = request.map_err(|errors| describe(&errors)).and_then(|request| issue(provider, &request));
    // Without a line break: a script that reads the token from this answer or from a file sends all of it.
    token.map_err(|why| BadRequest(why + "\n"))
}

fn issue(provider: &IdentityProvider, request: &MintRequest<'_>) -> Result<String, String> {
    let verified = switch("verified", request.verified, true)?;
    let age = if switch("expired", request.expired, false)? { 2 * TOKEN_TTL } else { 0 };
    let [email, subject, name] = [request.email, request.sub, request.name].map(Option::unwrap_or_default);
    let account = DevAccount::new(email, subject, name, verified)?;
    let audience = request.aud.unwrap_or(&provider.client_id);
    Ok(provider.issue(&account, audience, request.nonce, clock::now() - age))
}

fn switch(name: &str, text: Option<&str>, default: bool) -> Result<bool, String> {
    text.map_or(Ok(default), |text| text.parse().map_err(|_| format!("`{name}` must be true or false")))
}
