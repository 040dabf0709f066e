//! Token information in the form of Google's `https://oauth2.googleapis.com/tokeninfo`: the claims and the header of
//! a valid token, with every value as a string. No standard describes it. As at Google, a token for any audience is
//! valid; the caller has to check the audience.

use rocket::http::Status;
use rocket::{State, get, post};
use serde_json::{Map, Value};

use super::IdentityProvider;
use super::answer::Answer;
use super::parameters::Sent;
use crate::clock;

#[get("/tokeninfo")]
pub(super) fn get(provider: &State<IdentityProvider>, query: Sent) -> Answer {
    tell(provider, query)
}

#[post("/tokeninfo", data = "<form>")]
pub(super) fn post(provider: &State<IdentityProvider>, form: Sent) -> Answer {
    tell(provider, form)
}

fn tell(provider: &IdentityProvider, sent: Sent) -> Answer {
    let claims = sent.ok().and_then(|sent| provider.verify(sent.get("id_token")?, clock::now()));
    match claims {
        Some(claims) => Answer::json(&claims.into_iter().map(as_string).collect::<Map<_, _>>()),
        None => Answer::error(Status::BadRequest, "invalid_token", "Invalid Value"),
    }
}

fn as_string((name, value): (String, Value)) -> (String, Value) {
    match value {
        Value::String(_) => (name, value),
        other => (name, other.to_string().into()),
    }
}
