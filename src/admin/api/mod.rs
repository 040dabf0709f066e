//! The admin API under `/api/v1/admin`, for the product's backend: the verbs, checks and audit of
//! the pages, by API key.

mod changes;
mod claims;
mod events;
pub mod guard;
mod new_user;
mod parameters;
pub mod store;
mod users;
mod webhooks;

use rocket::Route;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use uuid::Uuid;

pub(super) use self::users::DataCopy;
use crate::admin::reason;
use crate::domain::{Object, Reason};
use crate::web::guard::json_body::required;
use crate::web::resource::{Resource, operations};
use crate::web::{ErrorCode, Problem};

const RESOURCES: [Resource; 5] = [
    changes::RESOURCE,
    claims::RESOURCE,
    events::RESOURCE,
    users::RESOURCE,
    webhooks::RESOURCE,
];

pub fn routes() -> Vec<Route> {
    RESOURCES.into_iter().flat_map(Resource::routes).collect()
}

/// Returns the description of these routes. Paths are relative to `/api/v1`.
pub fn description() -> OpenApi {
    let mut resources = OpenApi::default();
    for resource in RESOURCES {
        resources.merge(resource.description());
    }
    for operation in resources.paths.paths.values_mut().flat_map(operations) {
        operation.security = Some(vec![SecurityRequirement::new::<_, _, String>(
            "api_key",
            [],
        )]);
    }
    let mut whole = OpenApi::default().nest("/admin", resources);
    let tag = "For the product's backend, with an API key: find, create and change users, and follow events.";
    whole.tags = Some(vec![
        TagBuilder::new()
            .name("Administration")
            .description(Some(tag))
            .build(),
    ]);
    let key = "An API key of `vestibule api-key add`. Send exactly one `Authorization` header.";
    let key = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(key))
        .build();
    let components = whole.components.get_or_insert_default();
    components.add_security_scheme("api_key", SecurityScheme::Http(key));
    whole
}

fn user(id: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(id).map_err(|_| unknown_user())
}

fn unknown_user() -> Problem {
    Problem::new(
        ErrorCode::Refused(Reason::UserNotFound),
        "there is no user with the id in the path",
    )
}

fn reason(body: &Object) -> Result<String, Problem> {
    reason::read(required(body, "reason")?).ok_or_else(|| {
        let detail = format!(
            "`reason` must have 1 to {} characters that are not blank",
            reason::MAX_LENGTH
        );
        Problem::malformed(detail)
    })
}
