//! The one stylesheet.

use rocket::http::{ContentType, Header};
use rocket::{Responder, Route, get, routes};

pub(super) fn routes() -> Vec<Route> {
    routes![stylesheet]
}

#[derive(Responder)]
struct Asset {
    body: &'static str,
    content_type: ContentType,
    cache: Header<'static>,
}

#[get("/admin.css")]
fn stylesheet() -> Asset {
    Asset {
        body: include_str!("../../../static/admin.css"),
        content_type: ContentType::CSS,
        cache: Header::new("Cache-Control", "public, max-age=300"),
    }
}
