//! Pages on other origins (`web.origins`) that call the app's routes of the API (Fetch, "CORS protocol").

use rocket::fairing::{AdHoc, Fairing};
use rocket::http::{Header, Method, Status};
use rocket::response::{self, Responder};
use rocket::{Request, Response};

use crate::config;

/// The headers of answers that a page may read, beside those that it may always read.
const EXPOSED: &str =
    "Allow, DPoP-Nonce, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id";
/// The seconds for which a browser keeps the answer to a preflight: the most that Chromium does.
const MAX_AGE: &str = "7200";

/// Returns true if a listed page sent it. Without `Origin`, the browser says so of a page on the service's own origin.
pub fn is_listed(request: &Request<'_>, pages: &config::Web) -> bool {
    let headers = request.headers();
    let mut origins = headers.get("Origin");
    match (origins.next(), origins.next()) {
        (Some(origin), None) => pages.admits(origin),
        (None, _) => headers.get_one("Sec-Fetch-Site") == Some("same-origin") && pages.admits_own(),
        _ => false,
    }
}

/// Returns true if an app calls the path: neither a product's backend nor a provider.
fn is_for_apps(path: &str) -> bool {
    let path = path.strip_prefix("/api/v1/");
    path.is_some_and(|path| !path.starts_with("admin/") && !path.starts_with("providers/"))
}

/// The answer to a browser that asks whether a page may send a request.
pub struct Preflight(String);

impl Preflight {
    /// Answers the request, if it is a preflight of a listed page. `allowed` are the methods at its path.
    pub fn of(request: &Request<'_>, allowed: &[&str]) -> Option<Self> {
        let pages: &config::Web = request.rocket().state()?;
        let asked = request.method() == Method::Options
            && request.headers().contains("Access-Control-Request-Method")
            && !allowed.is_empty()
            && is_for_apps(request.uri().path().as_str())
            && is_listed(request, pages);
        asked.then(|| Self(allowed.join(", ")))
    }
}

impl<'r> Responder<'r, 'static> for Preflight {
    fn respond_to(self, _: &'r Request<'_>) -> response::Result<'static> {
        Response::build()
            .status(Status::NoContent)
            .header(Header::new("Access-Control-Allow-Methods", self.0))
            .header(Header::new("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP"))
            .header(Header::new("Access-Control-Max-Age", MAX_AGE))
            .ok()
    }
}

/// Lets the listed pages read all answers of the app's routes, errors included.
pub fn fairing() -> impl Fairing {
    AdHoc::on_response("CORS", |request, response| Box::pin(async move { add(request, response) }))
}

fn add(request: &Request<'_>, response: &mut Response<'_>) {
    let pages: Option<&config::Web> = request.rocket().state();
    let Some(pages) = pages.filter(|pages| !pages.is_off()) else { return };
    if !is_for_apps(request.uri().path().as_str()) {
        return;
    }
    response.adjoin_raw_header("Vary", "Origin");
    let origin = request.headers().get_one("Origin");
    if let Some(origin) = origin.filter(|_| is_listed(request, pages)) {
        response.set_raw_header("Access-Control-Allow-Origin", origin.to_owned());
        response.set_raw_header("Access-Control-Allow-Credentials", "true");
        response.set_raw_header("Access-Control-Expose-Headers", EXPOSED);
    }
}
