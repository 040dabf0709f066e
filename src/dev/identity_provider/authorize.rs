//! The authorization endpoint (RFC 6749 §4.1.1, RFC 7636 §4.3): a page on which the developer
//! chooses an account, and the redirect back to the client with a code. A wrong request is
//! explained on the page.

use rocket::form::{self, Form};
use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{FromForm, State, get, post};
use serde_json::json;
use url::Url;

use super::account::DevAccount;
use super::{IdentityProvider, describe};
use crate::accounts::OpaqueToken;
use crate::domain::secure_url::is_on_this_machine;
use crate::web::http::templates::{self, Html};

const TEMPLATE: &str = "dev/authorize";

/// An authorization request. Its parameters stay in the page's URL, to which the page's forms are
/// posted.
#[derive(FromForm)]
pub(super) struct AuthorizationRequest<'r> {
    response_type: &'r str,
    client_id: &'r str,
    redirect_uri: &'r str,
    scope: &'r str,
    state: &'r str,
    nonce: &'r str,
    code_challenge: &'r str,
    code_challenge_method: &'r str,
}

#[derive(FromForm)]
pub(super) struct Choice<'r> {
    #[field(default = "")]
    email: &'r str,
    #[field(default = "")]
    name: &'r str,
    #[field(default = "")]
    sub: &'r str,
    /// A checkbox, which sends nothing when it is not ticked.
    verified: bool,
    cancel: bool,
}

/// The account and the request that an authorization code (RFC 6749 §4.1.2) was issued for.
#[derive(Debug)]
pub(super) struct Grant {
    pub redirect_uri: String,
    pub code_challenge: String,
    pub nonce: String,
    pub account: DevAccount,
}

/// The choice before the developer has made one.
const NO_CHOICE: Choice<'_> = Choice {
    email: "",
    name: "",
    sub: "",
    verified: true,
    cancel: false,
};

type Page = Box<(Status, Html)>;

#[get("/authorize?<request..>")]
pub(super) fn show(
    provider: &State<IdentityProvider>,
    request: form::Result<'_, AuthorizationRequest<'_>>,
) -> Page {
    match check(provider, request) {
        Ok((request, _)) => page(Status::Ok, &request, &NO_CHOICE, None),
        Err(refusal) => refusal,
    }
}

#[post("/authorize?<request..>", data = "<choice>")]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Rocket hands guards over by value"
)]
pub(super) fn choose(
    provider: &State<IdentityProvider>,
    request: form::Result<'_, AuthorizationRequest<'_>>,
    choice: Form<Choice<'_>>,
) -> Result<Redirect, Page> {
    let (request, mut uri) = check(provider, request)?;
    let (name, value) = if choice.cancel {
        ("error", "access_denied".to_owned())
    } else {
        let account = DevAccount::new(choice.email, choice.sub, choice.name, choice.verified)
            .map_err(|mistake| page(Status::BadRequest, &request, &choice, Some(mistake)))?;
        let grant = Grant {
            redirect_uri: request.redirect_uri.to_owned(),
            code_challenge: request.code_challenge.to_owned(),
            nonce: request.nonce.to_owned(),
            account,
        };
        let code = OpaqueToken::generate().text.expose().clone();
        provider.codes().insert(code.clone(), grant);
        ("code", code)
    };
    // The client compares this with the issuer that it sent the browser to (RFC 9207 §2).
    let answer = [
        (name, value.as_str()),
        ("state", request.state),
        ("iss", &provider.issuer),
    ];
    uri.query_pairs_mut().extend_pairs(answer);
    Ok(Redirect::to(String::from(uri)))
}

fn check<'r>(
    provider: &IdentityProvider,
    request: form::Result<'_, AuthorizationRequest<'r>>,
) -> Result<(AuthorizationRequest<'r>, Url), Page> {
    let refuse = |why: &str| {
        Box::new((
            Status::BadRequest,
            templates::html(TEMPLATE, json!({ "refusal": why })),
        ))
    };
    let request = request.map_err(|errors| refuse(&describe(&errors)))?;
    let rules = [
        (
            request.client_id == provider.client_id,
            "`client_id` is not known to this provider",
        ),
        (
            request.response_type == "code",
            "`response_type` must be code",
        ),
        (
            request.scope.split(' ').any(|scope| scope == "openid"),
            "`scope` must contain openid",
        ),
        (
            request.code_challenge_method == "S256",
            "`code_challenge_method` must be S256",
        ),
    ];
    if let Some((_, why)) = rules.into_iter().find(|(holds, _)| !holds) {
        return Err(refuse(why));
    }
    let uri = Url::parse(request.redirect_uri)
        .ok()
        .filter(is_on_this_machine);
    let uri =
        uri.ok_or_else(|| refuse("`redirect_uri` must be an http or https URL on this machine"))?;
    Ok((request, uri))
}

fn page(
    status: Status,
    request: &AuthorizationRequest<'_>,
    choice: &Choice<'_>,
    mistake: Option<&str>,
) -> Page {
    let context = json!({
        "client_id": request.client_id,
        "redirect_uri": request.redirect_uri,
        "mistake": mistake,
        "email": choice.email,
        "name": choice.name,
        "sub": choice.sub,
        "verified": choice.verified,
    });
    Box::new((status, templates::html(TEMPLATE, context)))
}
