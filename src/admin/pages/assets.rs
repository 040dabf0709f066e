//! The stylesheet, the script, which the pages work without, and the icons.

use rocket::http::{ContentType, Header};
use rocket::{Responder, Route, get, routes};

pub(super) fn routes() -> Vec<Route> {
    routes![stylesheet, script, icon, icons]
}

#[derive(Responder)]
struct Asset {
    body: &'static str,
    content_type: ContentType,
    cache: Header<'static>,
}

impl Asset {
    fn new(body: &'static str, content_type: ContentType) -> Self {
        Self {
            body,
            content_type,
            cache: Header::new("Cache-Control", "public, max-age=300"),
        }
    }
}

#[get("/admin.css")]
fn stylesheet() -> Asset {
    Asset::new(include_str!("../../../static/admin.css"), ContentType::CSS)
}

#[get("/admin.js")]
fn script() -> Asset {
    Asset::new(
        include_str!("../../../static/admin.js"),
        ContentType::JavaScript,
    )
}

#[get("/icon.svg")]
fn icon() -> Asset {
    Asset::new(include_str!("../../../static/icon.svg"), ContentType::SVG)
}

#[get("/icons.svg")]
fn icons() -> Asset {
    Asset::new(include_str!("../../../static/icons.svg"), ContentType::SVG)
}
