//! The token endpoint (RFC 6749 §4.1.3, OpenID Connect Core §3.1.3): exchanges a code for an ID token. The access
//! token with it grants access to nothing.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rocket::http::Status;
use rocket::{State, post};
use serde::Serialize;

use super::answer::Answer;
use super::client_authentication::{Authorization, Refused};
use super::codes::{Grant, random};
use super::id_token::Terms;
use super::parameters::{Malformed, Parameters, Sent};
use super::{IdentityProvider, TOKEN_TTL};
use crate::clock;

/// A successful answer (RFC 6749 §5.1, OpenID Connect Core §3.1.3.3).
#[derive(Serialize)]
struct Tokens<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: u16,
    id_token: &'a str,
}

/// An error of RFC 6749 §5.2.
enum Error {
    Request(&'static str),
    Client,
    GrantType,
    Grant(&'static str),
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::Request(malformed.why())
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TwoMethods => Self::Request("the client authenticates in two ways at once"),
            Refused::Unknown => Self::Client,
        }
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        let bad = |error, description| Self::error(Status::BadRequest, error, description);
        match error {
            Error::Request(why) => bad("invalid_request", why),
            Error::GrantType => bad("unsupported_grant_type", "grant_type must be authorization_code"),
            Error::Grant(why) => bad("invalid_grant", why),
            // Every 401 names a scheme (RFC 9110 §15.5.2), also for a client that used the form.
            Error::Client => {
                Self::error(Status::Unauthorized, "invalid_client", "the client's id or secret is wrong")
                    .header("WWW-Authenticate", "Basic realm=\"development identity provider\"")
            }
        }
        .header("Pragma", "no-cache")
    }
}

#[post("/token", data = "<form>")]
#[expect(clippy::needless_pass_by_value, reason = "Rocket hands guards over by value")]
pub(super) fn exchange(provider: &State<IdentityProvider>, client: Authorization, form: Sent) -> Answer {
    match form.map_err(Error::from).and_then(|form| granted(provider, &client, &form)) {
        Ok(grant) => tokens(provider, &grant),
        Err(error) => error.into(),
    }
}

/// Returns the grant behind a code, if the request matches it.
fn granted(provider: &IdentityProvider, client: &Authorization, form: &Parameters) -> Result<Grant, Error> {
    client.check(provider, form)?;
    match form.get("grant_type") {
        Some("authorization_code") => {}
        Some(_) => return Err(Error::GrantType),
        None => return Err(Error::Request("grant_type is missing")),
    }
    let code = form.get("code").ok_or(Error::Request("code is missing"))?;
    let redirect_uri = form.get("redirect_uri").ok_or(Error::Request("redirect_uri is missing"))?;
    let grant = provider.codes.redeem(code, clock::now());
    let grant = grant.ok_or(Error::Grant("the code is unknown, used or too old"))?;
    if grant.client_id != provider.client_id {
        return Err(Error::Grant("the code was given to another client"));
    }
    if grant.redirect_uri != redirect_uri {
        return Err(Error::Grant("redirect_uri is not the one that the code was sent to"));
    }
    check_verifier(&grant, form)?;
    Ok(grant)
}

/// Checks the code verifier (RFC 7636 §4.6). A verifier without a challenge is refused as well: an attacker may have
/// removed the challenge from the authorization request (RFC 9700 §4.8.2).
fn check_verifier(grant: &Grant, form: &Parameters) -> Result<(), Error> {
    match (&grant.code_challenge, form.get("code_verifier")) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Error::Grant("code_verifier was sent, but code_challenge was not")),
        (Some(_), None) => Err(Error::Grant("code_verifier is missing")),
        (Some(challenge), Some(verifier)) if is_verifier(verifier) && s256(verifier) == *challenge => Ok(()),
        (Some(_), Some(_)) => Err(Error::Grant("code_verifier does not fit code_challenge")),
    }
}

/// Returns true for a well-formed verifier (RFC 7636 §4.1).
fn is_verifier(text: &str) -> bool {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    (43..=128).contains(&text.len()) && text.bytes().all(unreserved)
}

fn s256(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

fn tokens(provider: &IdentityProvider, grant: &Grant) -> Answer {
    let terms = Terms { audience: &provider.client_id, nonce: grant.nonce.as_deref(), issued: clock::now() };
    let (Ok(access_token), Ok(id_token)) = (random(), provider.issue(&grant.person, terms)) else {
        return Answer::broken();
    };
    let tokens = Tokens {
        access_token: &access_token,
        token_type: "Bearer",
        expires_in: TOKEN_TTL,
        id_token: id_token.expose(),
    };
    Answer::json(&tokens).header("Pragma", "no-cache")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standards_example() {
        // RFC 7636, appendix B
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(is_verifier(verifier));
        assert_eq!(s256(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
