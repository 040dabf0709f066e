//! The admin API under `/api/v1/admin`, for the product's backend: the verbs, checks and audit of the pages, by API key.

pub mod guard;

use rocket::Route;

/// Returns the routes, to be mounted at `/api/v1/admin`.
#[must_use]
pub fn routes() -> Vec<Route> {
    let resources: [Vec<Route>; 0] = [];
    resources.concat()
}
