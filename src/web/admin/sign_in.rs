//! Staff sign in and out.

use rocket::http::{Cookie, CookieJar, Status};
use rocket::response::Redirect;
use rocket::{Request, Responder, Route, State, get, post, routes};
use serde::Serialize;

use super::catcher::Failed;
use super::failure::Failure;
use super::flow::{Admin, next as next_page};
use super::page::{Page, View};
use crate::clock;
use crate::config::Provider;
use crate::domain::claims::VerifiedClaims;
use crate::domain::id_token::IdToken;
use crate::provider::{self, Providers};
use crate::session::staff;
use crate::web::database::Db;
use crate::web::guard::rate_limited::SignIn;
use crate::web::guard::staff::{COOKIE, cookie, same_origin};
use crate::web::guard::{ClientOrigin, RateLimited, Staff, StaffForm};

/// Binds a sign-in under way to the browser that began it.
const BROWSER: &str = "__Host-vestibule-sign-in";

pub(super) fn routes() -> Vec<Route> {
    routes![ask, begin, finish, sign_out]
}

#[derive(Responder)]
#[expect(clippy::large_enum_variant, reason = "it lives for one answer")]
pub(super) enum Answer {
    Redirect(Redirect),
    Page(Page),
}

/// The browser says that a page of ours sent the form. There is no session yet whose token it could
/// carry; what is to be prevented is that somebody is signed in as somebody else.
///
/// - **Succeeds** when no other site is named as the sender.
/// - **Fails** with 403 otherwise.
struct SameOrigin;

#[rocket::async_trait]
impl<'r> rocket::request::FromRequest<'r> for SameOrigin {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> rocket::request::Outcome<Self, ()> {
        let same =
            request.rocket().state::<Admin>().is_some_and(|admin| same_origin(request, admin.origin()));
        if same {
            rocket::request::Outcome::Success(Self)
        } else {
            rocket::request::Outcome::Error((Status::Forbidden, ()))
        }
    }
}

#[derive(Serialize)]
pub(super) struct Ask {
    /// Where to go afterwards.
    next: String,
    provider: String,
    /// Whether signing in is set up.
    complete: bool,
}

impl View for Ask {
    const TEMPLATE: &'static str = "admin/sign_in";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let ask = |complete| Self { next: "/admin/users?q=<b>".into(), provider: "<b>".into(), complete };
        vec![ask(true), ask(false)]
    }
}

#[get("/sign-in?<next>")]
async fn ask(next: Option<&str>, admin: &State<Admin>, providers: &State<Providers>) -> Page {
    // Known now, the browser may follow the form there. A provider that does not answer is met
    // when somebody signs in.
    let _ = admin.locate(providers).await;
    let (next, provider) = (next_page(next), admin.provider().to_owned());
    Page::public(Status::Ok, &Ask { next, provider, complete: admin.is_complete() })
}

#[post("/sign-in?<next>")]
async fn begin(
    _limit: RateLimited<SignIn>,
    _same_origin: SameOrigin,
    next: Option<&str>,
    admin: &State<Admin>,
    providers: &State<Providers>,
    db: &Db,
    cookies: &CookieJar<'_>,
) -> Result<Answer, Failure> {
    admin.locate(providers).await?;
    let begun = staff::begin(db.pool(), next_page(next)).await?;
    let Some(address) = admin.authorize(&begun) else {
        return Ok(failed(
            Status::ServiceUnavailable,
            "Signing in is not set up: the operator has to set IDP_CLIENT_SECRET.",
        ));
    };
    cookies.add(cookie(BROWSER, begun.browser.expose().clone()));
    Ok(Answer::Redirect(Redirect::to(address)))
}

#[get("/sign-in/callback?<answer..>")]
async fn finish(
    _limit: RateLimited<SignIn>,
    answer: Callback<'_>,
    admin: &State<Admin>,
    providers: &State<Providers>,
    db: &Db,
    cookies: &CookieJar<'_>,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let out_of_date = || {
        Ok(failed(
            Status::BadRequest,
            "This sign-in is out of date or was begun in another browser. Begin again.",
        ))
    };
    let browser = cookies.get(BROWSER).map(|cookie| cookie.value().to_owned()).unwrap_or_default();
    cookies.remove(Cookie::build(BROWSER).path("/").secure(true));
    let Some(pending) = staff::take(db.pool(), answer.state.unwrap_or_default(), &browser).await? else {
        return out_of_date();
    };
    let Some(provider) = providers.get(admin.provider()).filter(|provider| provider.enabled) else {
        return out_of_date();
    };
    // RFC 9207: an answer that names another issuer is not this provider's.
    if answer.iss.is_some_and(|iss| !provider.issuers.include(iss)) {
        return out_of_date();
    }
    let Some(code) = answer.code else {
        return Ok(failed(Status::BadRequest, "The identity provider did not sign you in. Begin again."));
    };
    let verified = verify(providers, provider, code, &pending, &admin.redirect_uri()).await;
    let claims = match verified {
        Ok(claims) => claims,
        Err(provider::Error::Refused(_)) => {
            return Ok(failed(
                Status::BadRequest,
                "The identity provider's answer is not valid. Begin again.",
            ));
        }
        Err(error) => return Err(error.into()),
    };
    match staff::sign_in(db.pool(), &claims, &origin.0).await? {
        Some(session) => {
            cookies.add(cookie(COOKIE, session.expose().clone()));
            Ok(Answer::Redirect(Redirect::to(pending.next)))
        }
        None if claims.email.is_none() => Ok(failed(
            Status::Forbidden,
            "The identity provider did not say your e-mail address, by which staff are known. Its administrator has to put the claims `email` and `email_verified` into the id_token.",
        )),
        None => Ok(failed(
            Status::Forbidden,
            "This account is not on the list of staff. An admin can add it with `vestibule staff add`.",
        )),
    }
}

async fn verify(
    providers: &Providers,
    provider: &Provider,
    code: &str,
    pending: &crate::store::staff::Pending,
    redirect_uri: &str,
) -> Result<VerifiedClaims, provider::Error> {
    let now = clock::now();
    let id_token = providers.exchange(provider, code, &pending.code_verifier, redirect_uri, now).await?;
    let malformed = provider::Error::Unavailable(provider::Unavailable::malformed_token());
    let id_token = IdToken::parse(&id_token, provider.token_format).map_err(|_| malformed)?;
    providers.verify(provider, &id_token, Some(&pending.nonce), now).await
}

/// What comes back from the provider (RFC 6749 §4.1.2). Its `error_description` is not shown: it is
/// whatever somebody put into a link.
#[derive(rocket::FromForm)]
struct Callback<'r> {
    code: Option<&'r str>,
    state: Option<&'r str>,
    iss: Option<&'r str>,
}

fn failed(status: Status, text: &str) -> Answer {
    let view = Failed { title: "You are not signed in", text: text.to_owned(), request_id: None };
    Answer::Page(Page::public(status, &view))
}

#[post("/sign-out", data = "<form>")]
async fn sign_out(
    _staff: Staff,
    form: StaffForm,
    db: &Db,
    cookies: &CookieJar<'_>,
) -> Result<Redirect, Failure> {
    if let Some(session) = cookies.get(COOKIE) {
        staff::sign_out(db.pool(), session.value(), form.get("everywhere").is_some()).await?;
    }
    cookies.remove(Cookie::build(COOKIE).path("/").secure(true));
    Ok(Redirect::to("/admin/sign-in"))
}
