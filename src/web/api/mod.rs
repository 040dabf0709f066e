//! The JSON API under `/api/v1`, one file a resource.

mod sign_in;
mod token_response;

use rocket::Route;

/// The routes of the API.
#[must_use]
pub fn routes() -> Vec<Route> {
    sign_in::routes()
}
