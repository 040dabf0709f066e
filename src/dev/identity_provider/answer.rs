//! The provider's responses, errors included. OAuth clients expect errors in OAuth's form, but the service's catcher
//! would render problems. No response may be stored, because each concerns one user at one time (RFC 6749 §5.1).

use std::io::Cursor;

use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use serde::Serialize;

use crate::web::problem::{Kind, Problem};
use crate::web::templates::{self, Html};

/// A complete response. It may hold a token, so it has no `Debug`.
pub(super) struct Answer {
    status: Status,
    body: Body,
    headers: Vec<Header<'static>>,
    /// The reason for a refusal, for the request log.
    reason: &'static str,
}

enum Body {
    None,
    Text(ContentType, String),
    Page(Box<Html>),
}

/// An OAuth error (RFC 6749 §5.2).
#[derive(Serialize)]
struct Error {
    error: &'static str,
    error_description: &'static str,
}

impl Answer {
    const fn new(status: Status, body: Body) -> Self {
        Self { status, body, headers: Vec::new(), reason: "the development provider refused" }
    }

    /// Creates a JSON response.
    pub fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(json) => Self::new(Status::Ok, Body::Text(ContentType::JSON, json)),
            Err(_) => Self::broken(),
        }
    }

    /// Creates a response with one line of text.
    pub fn text(status: Status, line: &str) -> Self {
        Self::new(status, Body::Text(ContentType::Plain, format!("{line}\n")))
    }

    /// Creates an error response for an OAuth client.
    pub fn error(status: Status, error: &'static str, error_description: &'static str) -> Self {
        Self { status, reason: error_description, ..Self::json(&Error { error, error_description }) }
    }

    /// Creates a page. Its URL holds the client's `state`, so no `Referer` is sent.
    pub fn page(status: Status, context: &impl Serialize) -> Self {
        Self::new(status, Body::Page(Box::new(templates::html("dev/authorize", context))))
            .header("Referrer-Policy", "no-referrer")
    }

    /// Redirects the browser, which then uses `GET` in any case (RFC 9700 §4.12).
    pub fn see_other(url: String) -> Self {
        Self::new(Status::SeeOther, Body::None)
            .header("Location", url)
            .header("Referrer-Policy", "no-referrer")
    }

    /// Reports an internal error of the provider.
    pub fn broken() -> Self {
        Self::text(Status::InternalServerError, "the development provider made a mistake")
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push(Header::new(name, value.into()));
        self
    }
}

impl<'r> Responder<'r, 'static> for Answer {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        match self.status.code {
            400..=499 => {
                Problem::new(Kind::InvalidRequest, self.reason).keep(request);
            }
            500.. => {
                Problem::internal().keep(request);
            }
            _ => {}
        }
        let mut response = match self.body {
            Body::None => Response::new(),
            Body::Text(content_type, text) => {
                Response::build().header(content_type).sized_body(text.len(), Cursor::new(text)).finalize()
            }
            Body::Page(template) => template.respond_to(request)?,
        };
        response.set_status(self.status);
        response.set_header(Header::new("Cache-Control", "no-store"));
        for header in self.headers {
            response.set_header(header);
        }
        Ok(response)
    }
}
