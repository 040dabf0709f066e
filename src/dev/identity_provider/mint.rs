//! `/mint`: issues a token for a given user, without a browser. It follows no standard, and no real provider would
//! offer it; `curl` and `vestibule dev token` use it.

use rocket::http::Status;
use rocket::{State, get};

use super::account::{self as person, Person};
use super::answer::Answer;
use super::id_token::Terms;
use super::parameters::{Malformed, Parameters, Sent};
use super::{IdentityProvider, TOKEN_TTL};
use crate::clock;

const PARAMETERS: [&str; 7] = ["email", "sub", "name", "verified", "aud", "expired", "nonce"];

/// The error of a request, for a developer at a terminal.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("`{0}` is not a parameter (there are: {list})", list = PARAMETERS.join(", "))]
    Unknown(String),
    #[error("`{0}` must be true or false")]
    Switch(&'static str),
    #[error(transparent)]
    Person(#[from] person::Error),
}

/// The requested token.
struct Wish {
    parameters: Parameters,
    person: Person,
    expired: bool,
}

impl Wish {
    fn read(query: Sent) -> Result<Self, Error> {
        let parameters = query?;
        if let Some(name) = parameters.unknown(&PARAMETERS) {
            return Err(Error::Unknown(name.to_owned()));
        }
        let verified = switch(&parameters, "verified", true)?;
        let [email, subject, name] = ["email", "sub", "name"].map(|name| parameters.get(name));
        let person = Person::new(email, subject, name, verified)?;
        Ok(Self { expired: switch(&parameters, "expired", false)?, person, parameters })
    }
}

fn switch(parameters: &Parameters, name: &'static str, default: bool) -> Result<bool, Error> {
    parameters.get(name).map_or(Ok(default), |text| text.parse().map_err(|_| Error::Switch(name)))
}

#[get("/mint")]
pub(super) fn mint(provider: &State<IdentityProvider>, query: Sent) -> Answer {
    let Wish { parameters, person, expired } = match Wish::read(query) {
        Ok(wish) => wish,
        Err(error) => return Answer::text(Status::BadRequest, &error.to_string()),
    };
    let age = if expired { 2 * i64::from(TOKEN_TTL) } else { 0 };
    let terms = Terms {
        audience: parameters.get("aud").unwrap_or(&provider.client_id),
        nonce: parameters.get("nonce"),
        issued: clock::now() - age,
    };
    match provider.issue(&person, terms) {
        Ok(token) => Answer::text(Status::Ok, token.expose()),
        Err(_) => Answer::broken(),
    }
}
