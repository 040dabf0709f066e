//! What all guards share.

use rocket::http::Status;
use rocket::outcome::Outcome;
use rocket::request::Request;

use crate::web::problem::Problem;

/// Returns what Rocket manages. Without it, the request is an internal error.
pub fn state<'r, T: Send + Sync + 'static>(request: &'r Request<'_>) -> Result<&'r T, Problem> {
    request.rocket().state().ok_or_else(Problem::internal)
}

/// Returns a guard's outcome, and keeps its problem with the request.
pub fn outcome<T, F>(result: Result<T, Problem>, request: &Request<'_>) -> Outcome<T, (Status, ()), F> {
    match result {
        Ok(value) => Outcome::Success(value),
        Err(problem) => Outcome::Error((problem.keep(request).status(), ())),
    }
}
