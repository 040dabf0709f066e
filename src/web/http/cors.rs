//! Pages on other origins (`web.origins`) that call the app's routes of the API (Fetch, "CORS
//! protocol").

use rocket::fairing::{AdHoc, Fairing};
use rocket::http::{Header, Method, Status};
use rocket::response::{self, Responder};
use rocket::{Request, Response};

use super::fields;
use crate::config;

/// The response headers that a page may read, in addition to the CORS-safelisted ones (Fetch).
const EXPOSED: &str =
    "Allow, DPoP-Nonce, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id";
/// The headers of requests that the API reads.
const USED: [&str; 3] = ["Authorization", "Content-Type", "DPoP"];
/// The longest name of a header that a preflight may ask for.
const MAX_NAME: usize = 64;
/// The seconds for which a browser keeps the answer to a preflight: the most that Chromium does.
const MAX_AGE: &str = "7200";

/// Returns true if a listed page sent it whose browser keeps the service's cookies. Without
/// `Origin`, the browser says so of a page on the service's own origin.
pub fn keeps_cookies(request: &Request<'_>, pages: &config::Web) -> bool {
    match listed(request, pages) {
        Some(origin) => !config::Web::is_web_view(origin),
        None => {
            !request.headers().contains("Origin")
                && fields::only(request, "Sec-Fetch-Site") == Some("same-origin")
                && pages.admits_own()
        }
    }
}

/// Returns the request's origin, if it is the only one and listed.
fn listed<'r>(request: &'r Request<'_>, pages: &config::Web) -> Option<&'r str> {
    fields::only(request, "Origin").filter(|origin| pages.admits(origin))
}

/// Returns true if an app calls the path: neither a product's backend nor a provider.
fn is_for_apps(path: &str) -> bool {
    let path = path.strip_prefix("/api/v1/");
    path.is_some_and(|path| !path.starts_with("admin/") && !path.starts_with("providers/"))
}

/// Returns the headers that a listed page may send: the API's headers, and all other headers that
/// it asks for, such as the `traceparent` of an instrumented page.
///
/// No header can do harm. A script cannot set a header that a browser vouches for (`Origin`,
/// `Cookie`, `Host`, `Sec-…`: Fetch, "forbidden request-header"). The service reads its
/// credentials, which the page has in any case. It believes forwarding headers, request ids and
/// traces only if they come from a trusted proxy, which replaces them. Any client can send all
/// other headers.
fn headers(request: &Request<'_>) -> String {
    let mut headers = USED.join(", ");
    let lines = request.headers().get("Access-Control-Request-Headers");
    for name in lines
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .filter(|name| is_name(name))
    {
        if !USED.iter().any(|used| used.eq_ignore_ascii_case(name)) {
            headers.push_str(", ");
            headers.push_str(name);
        }
    }
    headers
}

/// Returns true for the name of a header (RFC 9110 §5.1) of a usual length.
fn is_name(name: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_token)
}

/// The answer to a browser that asks whether a page may send a request.
pub struct Preflight {
    methods: String,
    headers: String,
}

impl Preflight {
    /// Answers the request, if it is a preflight of a listed page. `allowed` are the methods at its
    /// path.
    pub fn of(request: &Request<'_>, allowed: &[&str]) -> Option<Self> {
        let pages: &config::Web = request.rocket().state()?;
        let asked = request.method() == Method::Options
            && request.headers().contains("Access-Control-Request-Method")
            && !allowed.is_empty()
            && is_for_apps(request.uri().path().as_str())
            && listed(request, pages).is_some();
        asked.then(|| Self {
            methods: allowed.join(", "),
            headers: headers(request),
        })
    }
}

impl<'r> Responder<'r, 'static> for Preflight {
    fn respond_to(self, _: &'r Request<'_>) -> response::Result<'static> {
        Response::build()
            .status(Status::NoContent)
            .header(Header::new("Access-Control-Allow-Methods", self.methods))
            .header(Header::new("Access-Control-Allow-Headers", self.headers))
            .header(Header::new("Access-Control-Max-Age", MAX_AGE))
            .ok()
    }
}

/// Lets the listed pages read all answers of the app's routes, errors included.
pub fn fairing() -> impl Fairing {
    AdHoc::on_response("CORS", |request, response| {
        Box::pin(async move { add(request, response) })
    })
}

fn add(request: &Request<'_>, response: &mut Response<'_>) {
    let pages: Option<&config::Web> = request.rocket().state();
    let Some(pages) = pages.filter(|pages| !pages.is_off()) else {
        return;
    };
    if !is_for_apps(request.uri().path().as_str()) {
        return;
    }
    response.adjoin_raw_header("Vary", "Origin");
    if let Some(origin) = listed(request, pages) {
        response.set_raw_header("Access-Control-Allow-Origin", origin.to_owned());
        if !config::Web::is_web_view(origin) {
            response.set_raw_header("Access-Control-Allow-Credentials", "true");
        }
        response.set_raw_header("Access-Control-Expose-Headers", EXPOSED);
    }
}
