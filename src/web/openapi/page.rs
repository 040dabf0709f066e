//! `GET /api/v1/docs`: the document as a page to read and try. The viewer is Swagger UI. `build.rs`
//! embeds the two files of it that the page loads, so no other host is contacted.

use std::io::Cursor;

use rocket::get;
use rocket::http::{ContentType, Header};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};

use super::problems::{NoErrors, NotFoundOnly, Problems};
use crate::web::{ErrorCode, Problem, resource};

/// The viewer adds styles at run time and draws its icons from `data:` URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

resource!("Description": read_docs, read_docs_part);

/// The page, or one of its assets.
struct Part {
    body: &'static [u8],
    content_type: ContentType,
    gzipped: bool,
}

impl Part {
    const fn new(text: &'static str, content_type: ContentType) -> Self {
        Self {
            body: text.as_bytes(),
            content_type,
            gzipped: false,
        }
    }
}

impl<'r> Responder<'r, 'static> for Part {
    fn respond_to(self, _: &'r Request<'_>) -> response::Result<'static> {
        let mut response = Response::build();
        // Every browser inflates it, and the program is smaller by as much.
        if self.gzipped {
            response.header(Header::new("Content-Encoding", "gzip"));
        }
        response
            .header(self.content_type)
            .header(Header::new("Cache-Control", "public, max-age=300"))
            .header(Header::new("Content-Security-Policy", POLICY))
            .header(Header::new("Referrer-Policy", "same-origin"))
            .sized_body(self.body.len(), Cursor::new(self.body))
            .ok()
    }
}

/// A file of the viewer, as `build.rs` compressed it.
macro_rules! viewer {
    ($name:literal, $content_type:expr) => {{
        let body = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz"));
        Part {
            body,
            content_type: $content_type,
            gzipped: true,
        }
    }};
}

/// Read and try the API
///
/// Returns Swagger UI with this document.
#[utoipa::path(
    responses(
        (status = 200, description = "The page.", content_type = "text/html", body = String,
         example = "<!doctype html>…"),
        Problems<NoErrors>,
    ),
)]
#[get("/docs")]
const fn read_docs() -> Part {
    Part::new(include_str!("../../../static/docs.html"), ContentType::HTML)
}

/// Get an asset of the page
#[utoipa::path(
    params(("part" = String, Path, description = "The asset's file name.", example = "swagger-ui.css")),
    responses(
        (status = 200, description = "A stylesheet or a script.", content_type = "text/css", body = String,
         example = ".swagger-ui{…}"),
        Problems<NotFoundOnly>,
    ),
)]
#[get("/docs/<part>")]
fn read_docs_part(part: &str) -> Result<Part, Problem> {
    match part {
        "start.js" => Ok(Part::new(
            include_str!("../../../static/docs.js"),
            ContentType::JavaScript,
        )),
        "swagger-ui.css" => Ok(viewer!("swagger-ui.css", ContentType::CSS)),
        "swagger-ui-bundle.js" => Ok(viewer!("swagger-ui-bundle.js", ContentType::JavaScript)),
        _ => Err(Problem::new(
            ErrorCode::NotFound,
            "the page has no asset with this name",
        )),
    }
}
