//! Answers HTTP: guards read requests, handlers call a verb of `service`, and nothing here decides.

pub mod api;
pub mod data_deletion;
pub mod database;
pub mod guard;
pub mod http;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod problem;
pub(crate) mod resource;
pub mod well_known;

use utoipa::openapi::OpenApi;

pub(crate) use self::api::view::{Cached, Json};
pub use self::database::Db;
pub use self::http::templates::rfc3339;
pub(crate) use self::openapi::problems::{
    ErrorResponses, NotFoundOnly, Problems, errors, failures,
};
pub use self::problem::{ErrorCode, Problem};
use self::resource::Resource;
pub(crate) use self::resource::resource;

/// Returns the description of the whole service. `features` describes the features' routes under
/// `/api/v1`.
pub fn description(features: OpenApi) -> OpenApi {
    let outside = [
        well_known::RESOURCE,
        ops::RESOURCE,
        data_deletion::RESOURCE,
        problem::pages::RESOURCE,
    ];
    openapi::description(
        api::description().merge_from(features),
        outside.map(Resource::description),
    )
}
