//! The admin API under `/api/v1/admin`, for the product's backend: the verbs, checks and audit of the pages, by API key.

mod changes;
pub mod claims;
pub mod guard;

use rocket::Route;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use uuid::Uuid;

use crate::domain::json::Object;
use crate::domain::refusal::Reason;
use crate::web::guard::json_body::required;
use crate::web::problem::{ErrorCode, Problem};

/// The longest reason that is accepted, in characters.
const MAX_REASON: usize = 500;

/// Returns the routes, to be mounted at `/api/v1/admin`.
#[must_use]
pub fn routes() -> Vec<Route> {
    let resources = [changes::routes(), claims::routes()];
    resources.concat()
}

/// Returns the description of these routes. Paths are relative to `/api/v1`.
#[must_use]
pub fn description() -> OpenApi {
    changes::ApiDoc::openapi().merge_from(claims::ApiDoc::openapi())
}

/// Returns the user's id in a path.
fn user(id: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(id).map_err(|_| unknown_user())
}

fn unknown_user() -> Problem {
    Problem::new(ErrorCode::Refused(Reason::UserNotFound), "there is no user with the id in the path")
}

/// Returns the reason that every change needs, on one line.
fn reason(body: &Object) -> Result<String, Problem> {
    let given = required(body, "reason")?;
    let plain: String = given.chars().filter(|c| !c.is_control()).collect();
    let plain = plain.trim();
    if plain.is_empty() || given.chars().count() > MAX_REASON {
        let detail = format!("`reason` must have 1 to {MAX_REASON} characters that are not blank");
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    }
    Ok(plain.to_owned())
}
