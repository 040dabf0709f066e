//! The JSON API under `/api/v1`, one file a resource.

mod account;
mod identities;
mod oauth;
mod refresh;
mod sessions;
mod sign_in;
mod sign_out;
mod token_response;
mod view;

use rocket::Route;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use super::openapi;

/// The routes of the API.
#[must_use]
pub fn routes() -> Vec<Route> {
    let resources = [
        account::routes(),
        identities::routes(),
        oauth::routes(),
        openapi::routes(),
        refresh::routes(),
        sessions::routes(),
        sign_in::routes(),
        sign_out::routes(),
    ];
    resources.concat()
}

/// The description of the same routes but the document's own, their paths relative to where they are mounted.
#[must_use]
pub fn description() -> OpenApi {
    account::Described::openapi()
        .merge_from(identities::Described::openapi())
        .merge_from(oauth::Described::openapi())
        .merge_from(refresh::Described::openapi())
        .merge_from(sessions::Described::openapi())
        .merge_from(sign_in::Described::openapi())
        .merge_from(sign_out::Described::openapi())
}
