//! The JSON API under `/api/v1`, one file a resource.

mod account;
mod identities;
mod refresh;
mod sessions;
mod sign_in;
mod sign_out;
mod token_response;
mod view;

use rocket::Route;

/// The routes of the API.
#[must_use]
pub fn routes() -> Vec<Route> {
    let resources = [
        account::routes(),
        identities::routes(),
        refresh::routes(),
        sessions::routes(),
        sign_in::routes(),
        sign_out::routes(),
    ];
    resources.concat()
}
