//! The authorization endpoint (RFC 6749 §3.1, OpenID Connect Core §3.1.2): a page on which the developer chooses a
//! user, and the redirect back to the client with a code.

use rocket::http::Status;
use rocket::{State, get, post};
use serde::Serialize;

use super::account::{self as person, Person};
use super::answer::Answer;
use super::authorization_request::{AuthorizationRequest, Refused};
use super::codes::Grant;
use super::parameters::{Parameters, Sent};
use super::{IdentityProvider, PATH};
use crate::clock;

/// The fields that the page's forms add to the request.
const FIELDS: [&str; 6] = ["answer", "pick", "email", "name", "sub", "verified"];

/// Users that can be chosen with one click.
const PICKS: [Pick; 2] = [
    Pick { email: "ada@example.com", note: Some("support staff") },
    Pick { email: "grace@example.com", note: None },
];

#[derive(Serialize)]
struct Pick {
    email: &'static str,
    note: Option<&'static str>,
}

/// The content of the page: either a form, or a refusal that ends the request here.
#[derive(Default, Serialize)]
struct Page<'a> {
    refusal: Option<&'a str>,
    /// The reason why the form is shown again.
    mistake: Option<String>,
    /// The target of the forms: this page, with the client's request.
    action: String,
    client_id: &'a str,
    redirect_uri: &'a str,
    picks: &'a [Pick],
    email: &'a str,
    name: &'a str,
    sub: &'a str,
    verified: bool,
}

/// The user's choice on the page.
enum Wish {
    /// No choice yet: the request has just arrived.
    Form,
    Cancel,
    Be(Result<Person, person::Error>),
}

impl Wish {
    fn read(sent: &Parameters) -> Self {
        let [email, subject, name] = ["email", "sub", "name"].map(|name| sent.get(name));
        if sent.get("answer") == Some("cancel") {
            Self::Cancel
        } else if let Some(email) = sent.get("pick") {
            Self::Be(Person::new(Some(email), None, None, true))
        } else if sent.get("answer").or(email).or(subject).is_some() {
            // An unticked checkbox sends nothing.
            Self::Be(Person::new(email, subject, name, sent.get("verified") == Some("true")))
        } else {
            Self::Form
        }
    }
}

#[get("/authorize")]
pub(super) fn ask(provider: &State<IdentityProvider>, query: Sent) -> Answer {
    respond(provider, query, |_| Wish::Form)
}

/// Handles the forms of the page, and requests that clients send by POST (OpenID Connect Core §3.1.2.1).
#[post("/authorize", data = "<form>")]
pub(super) fn answer(provider: &State<IdentityProvider>, query: Sent, form: Sent) -> Answer {
    let sent = query.and_then(|query| query.merge(form?));
    respond(provider, sent, Wish::read)
}

fn respond(provider: &IdentityProvider, sent: Sent, wish: impl FnOnce(&Parameters) -> Wish) -> Answer {
    let sent = match sent {
        Ok(sent) => sent,
        Err(malformed) => return refuse(&format!("The request cannot be read: {malformed}.")),
    };
    let request = match AuthorizationRequest::read(provider, &sent) {
        Ok(request) => request,
        Err(Refused::Here(why)) => return refuse(why),
        Err(Refused::There(back, error, description)) => {
            let answer = [("error", error), ("error_description", description)];
            return Answer::see_other(back.with(&provider.issuer, &answer));
        }
    };
    match wish(&sent) {
        Wish::Form => form(Status::Ok, &sent, None),
        Wish::Be(Err(mistake)) => form(Status::BadRequest, &sent, Some(mistake)),
        Wish::Be(Ok(person)) => grant(provider, request, person),
        Wish::Cancel => Answer::see_other(request.back.with(&provider.issuer, &[("error", "access_denied")])),
    }
}

fn refuse(why: &str) -> Answer {
    Answer::page(Status::BadRequest, &Page { refusal: Some(why), ..Page::default() })
}

fn form(status: Status, sent: &Parameters, mistake: Option<person::Error>) -> Answer {
    let field = |name| sent.get(name).unwrap_or_default();
    let page = Page {
        refusal: None,
        action: format!("{PATH}/authorize?{}", sent.encode_without(&FIELDS)),
        client_id: field("client_id"),
        redirect_uri: field("redirect_uri"),
        picks: &PICKS,
        email: sent.get("email").or(sent.get("login_hint")).unwrap_or_default(),
        name: field("name"),
        sub: field("sub"),
        verified: mistake.is_none() || field("verified") == "true",
        mistake: mistake.map(|mistake| mistake.to_string()),
    };
    Answer::page(status, &page)
}

fn grant(provider: &IdentityProvider, request: AuthorizationRequest, person: Person) -> Answer {
    let AuthorizationRequest { back, nonce, code_challenge } = request;
    let grant = Grant {
        client_id: provider.client_id.clone(),
        redirect_uri: back.uri.clone(),
        code_challenge,
        nonce,
        person,
    };
    match provider.codes.issue(grant, clock::now()) {
        Ok(code) => Answer::see_other(back.with(&provider.issuer, &[("code", &code)])),
        Err(_) => Answer::broken(),
    }
}
