//! The JSON API under `/api/v1`, with one file for each resource.

mod account;
mod data_deletion;
mod identities;
mod merge;
mod oauth;
mod provider_events;
mod providers;
mod refresh;
mod sessions;
mod sign_in;
mod sign_out;
mod token_response;
pub(crate) mod view;

pub use self::sign_in::errors as sign_in_errors;

use rocket::Route;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use super::openapi;

/// Returns the routes of the API.
#[must_use]
pub fn routes() -> Vec<Route> {
    let resources = [
        account::routes(),
        data_deletion::routes(),
        identities::routes(),
        merge::routes(),
        oauth::routes(),
        openapi::routes(),
        provider_events::routes(),
        providers::routes(),
        refresh::routes(),
        sessions::routes(),
        sign_in::routes(),
        sign_out::routes(),
    ];
    resources.concat()
}

/// Returns the description of these routes, except the document's own. Paths are relative to the mount point.
#[must_use]
pub fn description() -> OpenApi {
    account::ApiDoc::openapi()
        .merge_from(data_deletion::ApiDoc::openapi())
        .merge_from(identities::ApiDoc::openapi())
        .merge_from(merge::ApiDoc::openapi())
        .merge_from(oauth::ApiDoc::openapi())
        .merge_from(provider_events::ApiDoc::openapi())
        .merge_from(providers::ApiDoc::openapi())
        .merge_from(refresh::ApiDoc::openapi())
        .merge_from(sessions::ApiDoc::openapi())
        .merge_from(sign_in::ApiDoc::openapi())
        .merge_from(sign_out::ApiDoc::openapi())
}
