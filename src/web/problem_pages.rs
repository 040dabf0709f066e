//! `/problems/<error>`: what an error means and what to do about it, for the developer who reads
//! it at midnight. A problem's `type` leads here.

use rocket::{Route, get, routes};
use serde::Serialize;

use super::problem::{Entry, Kind, Problem};
use super::templates::{Html, html};

/// The routes of the pages.
#[must_use]
pub fn routes() -> Vec<Route> {
    routes![index, page]
}

#[derive(Serialize)]
struct Context {
    entries: Vec<Entry>,
}

#[get("/")]
fn index() -> Html {
    html("problems", Context { entries: Kind::all().map(Kind::entry).collect() })
}

#[get("/<error>")]
fn page(error: &str) -> Result<Html, Problem> {
    let entry = Kind::all().map(Kind::entry).find(|entry| entry.error == error);
    let entry = entry.ok_or_else(|| Problem::new(Kind::NotFound, "no error has this name"))?;
    Ok(html("problems", Context { entries: vec![entry] }))
}
