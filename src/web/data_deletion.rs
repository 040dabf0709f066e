//! `/providers/<name>/data-deletion/<code>`: the outcome of a request to delete data, for the
//! person who made it.

use rocket::http::Status;
use rocket::{State, get};
use serde::Serialize;
use uuid::Uuid;

use super::api::view::Cached;
use super::database::Db;
use super::guard::RateLimited;
use super::guard::rate_limited::Refresh;
use super::http::templates::{Html, html, rfc3339};
use super::openapi::problems::Problems;
use super::problem::Problem;
use super::resource::resource;
use crate::provider::Providers;
use crate::provider_events::data_deletion::{self, Outcome};

resource!("Providers": data_deletion_status);

/// The request, or nothing if the code is unknown.
#[derive(Serialize, Default)]
struct Context {
    code: Option<String>,
    received_at: Option<String>,
    outcome: Option<Outcome>,
}

/// See the outcome of a request to delete data
///
/// Returns an HTML page for the person who made the request. It names no person.
#[utoipa::path(
    path = "/providers/{provider}/data-deletion/{code}",
    params(("provider" = String, Path, description = "The provider that sent the request.", example = "facebook"),
           ("code" = String, Path, description = "The confirmation code.", example = "0b3f6c1e5d2a4f7e9c8b1a2d3e4f5a6b")),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html", example = "<!doctype html>…"),
        (status = 404, description = "The same page: no request of the last 90 days has this code.", body = String,
         content_type = "text/html", example = "<!doctype html>…"),
        Problems<(RateLimited<Refresh>, Db)>,
    ),
)]
#[get("/providers/<name>/data-deletion/<code>")]
async fn data_deletion_status(
    _limit: RateLimited<Refresh>,
    name: &str,
    code: &str,
    db: &Db,
    providers: &State<Providers>,
) -> Result<Cached<(Status, Html)>, Problem> {
    let page = |status, context| Cached::never((status, html("data_deletion", context)));
    let known = Uuid::try_parse(code)
        .ok()
        .filter(|_| providers.get(name).is_some());
    let Some(code) = known else {
        return Ok(page(Status::NotFound, Context::default()));
    };
    let Some(found) = db.run(|_| data_deletion::status(db, name, code)).await? else {
        return Ok(page(Status::NotFound, Context::default()));
    };
    let code = Some(code.simple().to_string());
    let received_at = Some(rfc3339(found.received_at));
    Ok(page(
        Status::Ok,
        Context {
            code,
            received_at,
            outcome: found.outcome,
        },
    ))
}
