//! `/problems/<error>`: pages for developers about an error's cause and remedy. A problem's `type` links here.

use rocket::get;
use serde::Serialize;

use super::{Entry, ErrorCode, Problem};
use crate::web::http::templates::{Html, html};
use crate::web::openapi::problems::NoErrors;
use crate::web::{NotFoundOnly, Problems, resource};

resource!("Description": problems, problem);

#[derive(Serialize)]
struct Context {
    entries: Vec<Entry>,
}

/// List every error
///
/// Returns an HTML page with the cause and the remedy of each error.
#[utoipa::path(
    responses((status = 200, description = "The page.", body = String, content_type = "text/html",
               example = "<!doctype html>…"), Problems<NoErrors>),
)]
#[get("/problems")]
fn problems() -> Html {
    let mut entries: Vec<_> = ErrorCode::all().map(ErrorCode::entry).collect();
    entries.sort_by_key(|entry| entry.status);
    html("problems", Context { entries })
}

/// Explain one error
///
/// Returns an HTML page with the cause and the remedy. A problem's `type` links to it.
#[utoipa::path(
    params(("name" = String, Path, description = "The value of `error`.", example = "audience_mismatch")),
    responses((status = 200, description = "The page.", body = String, content_type = "text/html",
               example = "<!doctype html>…"),
              Problems<NotFoundOnly>),
)]
#[get("/problems/<name>")]
fn problem(name: &str) -> Result<Html, Problem> {
    let entry = ErrorCode::all()
        .map(ErrorCode::entry)
        .find(|entry| entry.error == name);
    let entry = entry.ok_or_else(|| Problem::new(ErrorCode::NotFound, "no error has this name"))?;
    Ok(html(
        "problems",
        Context {
            entries: vec![entry],
        },
    ))
}
