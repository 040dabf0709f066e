//! `/problems/<error>`: pages for developers about an error's cause and remedy. A problem's `type` links here.

use rocket::{Route, get, routes};
use serde::Serialize;
use utoipa::OpenApi;

use super::{Entry, ErrorCode, Problem};
use crate::web::http::templates::{Html, html};
use crate::web::openapi::problems::{NoErrors, NotFoundOnly, Problems};

/// Returns the routes of the pages.
#[must_use]
pub fn routes() -> Vec<Route> {
    routes![index, page]
}

#[derive(Serialize)]
struct Context {
    entries: Vec<Entry>,
}

/// Returns the description of the pages.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    ApiDoc::openapi()
}

#[derive(OpenApi)]
#[openapi(paths(index, page))]
struct ApiDoc;

/// List every error
///
/// Returns an HTML page with the cause and the remedy of each error.
#[utoipa::path(
    get,
    path = "/problems",
    operation_id = "problems",
    tag = "Description",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html",
               example = "<!doctype html>…"), Problems<NoErrors>),
)]
#[get("/")]
fn index() -> Html {
    let mut entries: Vec<_> = ErrorCode::all().map(ErrorCode::entry).collect();
    entries.sort_by_key(|entry| entry.status);
    html("problems", Context { entries })
}

/// Explain one error
///
/// Returns an HTML page with the cause and the remedy. A problem's `type` links to it.
#[utoipa::path(
    get,
    path = "/problems/{name}",
    operation_id = "problem",
    tag = "Description",
    params(("name" = String, Path, description = "The value of `error`.", example = "audience_mismatch")),
    responses((status = 200, description = "The page.", body = String, content_type = "text/html",
               example = "<!doctype html>…"),
              Problems<NotFoundOnly>),
)]
#[get("/<name>")]
fn page(name: &str) -> Result<Html, Problem> {
    let entry = ErrorCode::all().map(ErrorCode::entry).find(|entry| entry.error == name);
    let entry = entry.ok_or_else(|| Problem::new(ErrorCode::NotFound, "no error has this name"))?;
    Ok(html("problems", Context { entries: vec![entry] }))
}
