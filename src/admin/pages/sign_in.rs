//! The sign-in and sign-out of staff.

use std::borrow::Cow;
use std::convert::Infallible;

use rocket::http::{CookieJar, Status};
use rocket::outcome::IntoOutcome;
use rocket::request::{FromRequest, Outcome, Request};
use rocket::response::Redirect;
use rocket::{Route, State, get, post, routes};
use serde::Serialize;
use url::form_urlencoded;

use crate::admin::pages::guard::{COOKIE, cookie, removal, same_origin};
use crate::admin::pages::{Failure, Page, Staff, StaffForm, guard};
use crate::admin::staff::sign_in::flow::{Admin, next as next_page};
use crate::admin::staff::sign_in::session;
use crate::admin::staff::sign_in::store::{self, Stranger};
use crate::clock;
use crate::domain::presets::google;
use crate::domain::{IdToken, VerifiedClaims};
use crate::provider::{self, Provider, Providers};
use crate::web::guard::rate_limited::StaffSignIn;
use crate::web::guard::{ClientOrigin, RateLimited};
use crate::web::http::fields;
use crate::web::{Db, ErrorCode, Problem};

/// The cookie that binds a sign-in to the browser that began it.
const BROWSER: &str = "__Host-vestibule-sign-in";

pub(super) fn routes() -> Vec<Route> {
    routes![ask, begin, finish, sign_out]
}

/// A form that, as the browser says, this site sent. There is no session yet whose CSRF token it
/// could carry. The guard prevents an attacker from signing a member of staff in with another
/// account.
///
/// - **Succeeds** when the browser names no other site as the sender.
/// - **Fails** with 403 otherwise.
struct SameOrigin;

#[rocket::async_trait]
impl<'r> FromRequest<'r> for SameOrigin {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, ()> {
        let admin = request.rocket().state::<Admin>();
        let same = admin.is_some_and(|admin| same_origin(request, &admin.public_url));
        same.then_some(Self).or_error((Status::Forbidden, ()))
    }
}

/// The cookies that the browser has sent, and the jar for new cookies.
///
/// - **Succeeds** always.
struct Cookies<'r> {
    /// The session of staff.
    session: Option<&'r str>,
    /// The browser that began a sign-in; empty without the cookie.
    browser: &'r str,
    jar: &'r CookieJar<'r>,
}

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Cookies<'r> {
    type Error = Infallible;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Infallible> {
        let browser = fields::cookie(request, BROWSER)
            .ok()
            .flatten()
            .unwrap_or_default();
        Outcome::Success(Self {
            session: guard::session(request),
            browser,
            jar: request.cookies(),
        })
    }
}

#[derive(Serialize)]
pub(super) struct Ask {
    next: String,
    provider: String,
    complete: bool,
    /// True if a form arrived after the session's end, so that nothing was done.
    undone: bool,
    /// The reason or the note that was typed into it, and goes along.
    kept: Option<String>,
    settings: [String; 3],
}

#[get("/sign-in?<next>&<undone>")]
async fn ask(
    next: Option<&str>,
    undone: Option<&str>,
    admin: &State<Admin>,
    providers: &State<Providers>,
) -> Page {
    // The page's security policy must name the provider's origin. If the provider does not answer,
    // `begin` reports it.
    let _ = admin.locate(providers).await;
    let next = next_page(next);
    let provider = admin.provider.clone();
    let complete = admin.complete;
    let settings = admin.settings.clone();
    let typed = next.split_once('?').map_or("", |(_, query)| query);
    let is_text = |(name, _): &(Cow<'_, str>, _)| name == "reason" || name == "text";
    let kept = form_urlencoded::parse(typed.as_bytes())
        .find(is_text)
        .map(|(_, text)| text.into_owned());
    let undone = undone.is_some();
    Page::public(
        Status::Ok,
        "admin/sign_in",
        &Ask {
            next,
            provider,
            complete,
            undone,
            kept: kept.filter(|_| undone),
            settings,
        },
    )
}

#[post("/sign-in?<next>")]
async fn begin(
    _limit: RateLimited<StaffSignIn>,
    _same_origin: SameOrigin,
    next: Option<&str>,
    admin: &State<Admin>,
    providers: &State<Providers>,
    db: &Db,
    cookies: &CookieJar<'_>,
) -> Result<Redirect, Failure> {
    if let Some(setting) = admin.strayed() {
        let cause = format!("an endpoint {}; check {setting}", google::STRAY);
        return Err(Failure::misconfigured(&admin.provider, cause));
    }
    admin
        .locate(providers)
        .await
        .map_err(|error| Failure::at(&admin.provider, error))?;
    let begun = session::begin(db, next_page(next)).await?;
    let Some(address) = admin.authorize(&begun) else {
        let cause = "it has no client secret, or no endpoints for the sign-in of staff";
        tracing::warn!(
            provider = admin.provider,
            cause,
            "staff_sign_in_misconfigured"
        );
        return Err(Failure::NotSignedIn(
            Status::ServiceUnavailable,
            "Signing in is not set up: the sign-in page names the settings.",
            Problem::new(
                ErrorCode::ProviderDisabled,
                "the provider of staff has no client secret or no endpoints",
            )
            .into(),
        ));
    };
    cookies.add(cookie(BROWSER, begun.browser.expose().clone()));
    Ok(Redirect::to(address))
}

#[get("/sign-in/callback?<answer..>")]
async fn finish(
    _limit: RateLimited<StaffSignIn>,
    answer: Callback<'_>,
    admin: &State<Admin>,
    providers: &State<Providers>,
    db: &Db,
    cookies: Cookies<'_>,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    cookies.jar.add(removal(BROWSER));
    let pending = store::take(db, answer.state.unwrap_or_default(), cookies.browser).await?;
    let pending =
        pending.ok_or_else(|| out_of_date("no such sign-in was begun by this browser lately"))?;
    let provider = providers
        .get(&admin.provider)
        .filter(|provider| provider.settings.enabled);
    let provider = provider.ok_or_else(|| out_of_date("the provider of staff is switched off"))?;
    // An answer that names another issuer is not this provider's (RFC 9207).
    if answer
        .iss
        .is_some_and(|iss| !provider.settings.issuers.include(iss))
    {
        return Err(out_of_date("the answer names another issuer"));
    }
    let Some(code) = answer.code else {
        let problem = Problem::malformed("the provider's answer has no code");
        // Without this check, anyone could make the answer up and send it as a link.
        let problem = match answer.error.map(provider::error_name) {
            Some(error) => problem.logged(format!("the provider answers with an error: {error}")),
            None => problem,
        };
        let problem = problem.about(&provider.settings.name);
        let text = "The identity provider did not sign you in. Begin again.";
        return Err(Failure::NotSignedIn(
            Status::BadRequest,
            text,
            problem.into(),
        ));
    };
    let verified = verify(provider, code, &pending, &admin.redirect_uri()).await;
    let claims = verified.map_err(|error| Failure::at(&provider.settings.name, error))?;
    match session::sign_in(db, &provider.settings, &claims, cookies.session, &origin.0).await? {
        Ok(session) => {
            cookies.jar.add(cookie(COOKIE, session.expose().clone()));
            Ok(Redirect::to(pending.next))
        }
        Err(stranger) => {
            let text = refused(stranger);
            Err(Failure::NotSignedIn(
                Status::Forbidden,
                text,
                Problem::malformed(text).into(),
            ))
        }
    }
}

const fn refused(stranger: Stranger) -> &'static str {
    match stranger {
        Stranger::NotStaff => {
            "This account is not on the list of staff. An admin can add it with `vestibule staff add`."
        }
        Stranger::NoEmail => {
            "The identity provider did not say your e-mail address, by which staff are known. Its administrator has to put \
             the claims `email` and `email_verified` into the id_token or into the answer of its userinfo endpoint."
        }
        Stranger::NobodyYet => {
            "Nobody is on the list of staff yet. The operator adds the first admin with `vestibule staff add`."
        }
        Stranger::NotAuthoritative => {
            "Google has verified this address once, and does not run the mailbox: somebody else may have it by now. \
             Sign in with an account of Gmail or of a Google Workspace."
        }
        Stranger::AnotherIdentity => {
            "This is not the account that the member of staff with this address first signed in with. If it is theirs, \
             the operator can let it in with `vestibule staff reset`."
        }
        Stranger::Suspended => {
            "The provider has reported that this account was hijacked, disabled or deleted. Recover it there first; the \
             provider then reports it enabled. To let another account in, the operator runs `vestibule staff reset`."
        }
    }
}

async fn verify(
    provider: &Provider,
    code: &str,
    pending: &store::Pending,
    redirect_uri: &str,
) -> Result<VerifiedClaims, provider::Error> {
    let now = clock::now();
    let tokens = provider
        .exchange(code, &pending.code_verifier, redirect_uri, now)
        .await?;
    let malformed = provider::Error::Unavailable(provider::Unavailable::malformed_token());
    let id_token = tokens.id_token.expose();
    let id_token =
        IdToken::parse(id_token, provider.settings.token_format).map_err(|_| malformed)?;
    let claims = provider
        .verify(&id_token, Some(&pending.nonce), now)
        .await?;
    provider
        .with_userinfo(claims, &id_token, &tokens, now)
        .await
}

/// The provider's response (RFC 6749 §4.1.2). Its `error_description` is not shown, since any link
/// can contain one.
#[derive(rocket::FromForm)]
struct Callback<'r> {
    code: Option<&'r str>,
    state: Option<&'r str>,
    iss: Option<&'r str>,
    error: Option<&'r str>,
}

fn out_of_date(why: &'static str) -> Failure {
    let text = "This sign-in is out of date or was begun in another browser. Begin again.";
    Failure::NotSignedIn(Status::BadRequest, text, Problem::malformed(why).into())
}

#[post("/sign-out", data = "<form>")]
async fn sign_out(
    _staff: Staff,
    form: StaffForm,
    db: &Db,
    cookies: Cookies<'_>,
) -> Result<Redirect, Failure> {
    if let Some(session) = cookies.session {
        store::end_sessions(db, session, form.get("everywhere").is_some()).await?;
    }
    cookies.jar.add(removal(COOKIE));
    Ok(Redirect::to("/admin/sign-in"))
}
