//! A path means one thing, to us and to whatever stands in front of us.

use rocket::fairing::{AdHoc, Fairing};
use rocket::uri;

/// Rocket skips empty segments when it looks for a route, so `//api/v1` would pass a gateway's rule
/// for `/api/v1` and still arrive. Such a path is found nowhere.
#[must_use]
pub fn fairing() -> impl Fairing {
    AdHoc::on_request("exact paths", |request, _| {
        Box::pin(async move {
            if request.uri().path().as_str().contains("//") {
                // No route will ever be called so.
                request.set_uri(uri!("/:"));
            }
        })
    })
}
