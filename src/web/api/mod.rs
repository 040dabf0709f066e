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
use utoipa::openapi::OpenApi;

use super::openapi;
use super::resource::Resource;

const RESOURCES: [Resource; 13] = [
    account::RESOURCE,
    data_deletion::RESOURCE,
    identities::RESOURCE,
    merge::RESOURCE,
    oauth::RESOURCE,
    openapi::RESOURCE,
    openapi::page::RESOURCE,
    provider_events::RESOURCE,
    providers::RESOURCE,
    refresh::RESOURCE,
    sessions::RESOURCE,
    sign_in::RESOURCE,
    sign_out::RESOURCE,
];

pub fn routes() -> Vec<Route> {
    RESOURCES.into_iter().flat_map(Resource::routes).collect()
}

/// Returns the description of these routes. Paths are relative to the mount point.
pub fn description() -> OpenApi {
    let none = OpenApi::default();
    RESOURCES
        .into_iter()
        .map(Resource::description)
        .fold(none, OpenApi::merge_from)
}
