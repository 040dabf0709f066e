//! Turns everything that no handler answered into a problem: failed guards, unknown paths, wrong
//! methods, panics.

use rocket::http::Status;
use rocket::{Catcher, Request, Route, catch, catchers};

use super::cors::Preflight;
use crate::web::{ErrorCode, Problem};

pub fn catchers() -> Vec<Catcher> {
    catchers![default]
}

#[catch(default)]
fn default(status: Status, request: &Request<'_>) -> Result<Preflight, Problem> {
    let preflight = Preflight::of(request, &allowed(request));
    preflight.ok_or_else(|| from_status(status, request).keep(request).clone())
}

/// Returns the problem for a failure that only Rocket saw.
fn from_status(status: Status, request: &Request<'_>) -> Problem {
    match status.code {
        404 | 405 => unrouted(request),
        // Rocket also answers 400 to a method that it does not know.
        400 if !allowed(request).is_empty() => unrouted(request),
        413 => Problem::new(
            ErrorCode::PayloadTooLarge,
            "the request is larger than any valid request",
        ),
        415 => Problem::new(
            ErrorCode::UnsupportedMediaType,
            "the body must be `application/json`",
        ),
        400..=499 => Problem::malformed("the request is not well-formed HTTP"),
        503 => Problem::unavailable(1, "the service is busy"),
        _ => Problem::internal(),
    }
}

/// Returns 405 with `Allow` if the path has other methods, else 404. Rocket answers 404 to both.
fn unrouted(request: &Request<'_>) -> Problem {
    let allowed = allowed(request);
    if allowed.is_empty() {
        return Problem::new(ErrorCode::NotFound, "this path does not exist");
    }
    Problem {
        allow: Some(allowed.join(", ")),
        ..Problem::new(
            ErrorCode::MethodNotAllowed,
            "the path does not support this method",
        )
    }
}

fn allowed<'r>(request: &'r Request<'_>) -> Vec<&'r str> {
    let at_path = |route: &&Route| covers(route.uri.path(), request.uri().path().as_str());
    let mut allowed: Vec<&str> = request
        .rocket()
        .routes()
        .filter(at_path)
        .map(|route| route.method.as_str())
        .collect();
    allowed.sort_unstable();
    allowed.dedup();
    allowed
}

/// Returns `true` if a route's path, with its `<parameters>`, matches the request's path.
fn covers(route: &str, path: &str) -> bool {
    let mut segments = route.split('/');
    let mut parts = path.split('/');
    loop {
        match (segments.next(), parts.next()) {
            (None, None) => return true,
            (Some(segment), Some(part))
                if segment == part || (segment.starts_with('<') && !part.is_empty()) => {}
            _ => return false,
        }
    }
}
