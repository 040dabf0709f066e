//! Error pages under `/admin`.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Catcher, Request, Responder, catch, catchers as collect};
use serde::Serialize;
use url::form_urlencoded;

use super::page::{Page, View};
use crate::web::http::request_id::RequestId;
use crate::web::problem::{ErrorCode, Problem};

pub(super) fn catchers() -> Vec<Catcher> {
    collect![default]
}

#[derive(Serialize)]
pub(super) struct Failed {
    pub title: &'static str,
    pub text: String,
    pub request_id: Option<String>,
}

impl View for Failed {
    const TEMPLATE: &'static str = "admin/error";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let failed = |request_id| Self { title: "Nothing here", text: "<b>".into(), request_id };
        vec![failed(None), failed(Some("<b>".into()))]
    }
}

#[derive(Responder)]
#[expect(clippy::large_enum_variant, reason = "it lives for one answer")]
enum Answer {
    SignIn(Redirect),
    Page(Page),
}

/// Redirects to the sign-in, and back afterwards, if no member of staff is signed in. Otherwise shows the failure.
#[catch(default)]
fn default(status: Status, request: &Request<'_>) -> Answer {
    if status == Status::Unauthorized {
        let next: String = form_urlencoded::byte_serialize(request.uri().to_string().as_bytes()).collect();
        Problem::new(ErrorCode::InvalidAccessToken, "nobody is signed in").keep(request);
        return Answer::SignIn(Redirect::to(format!("/admin/sign-in?next={next}")));
    }
    let (title, text) = match status.code {
        400 | 413 | 422 => (
            "That did not work",
            "The form is incomplete or out of date. Go back, reload the page and try again.",
        ),
        403 => (
            "Not allowed",
            "Your role does not allow this, or the form is out of date. Go back, reload the page and try again.",
        ),
        404 | 405 => {
            ("Nothing here", "This page or user does not exist. The user may have been deleted or merged.")
        }
        429 => ("Too many requests", "Wait a minute, then try again."),
        503 => ("Not now", "The database or the identity provider does not answer. Try again in a minute."),
        _ => ("Something went wrong", "The service made a mistake. Tell the operator the request ID below."),
    };
    let kind = match status.code {
        404 | 405 => ErrorCode::NotFound,
        400..=499 => ErrorCode::InvalidRequest,
        503 => ErrorCode::ServiceUnavailable,
        _ => ErrorCode::InternalError,
    };
    Problem::new(kind, title).keep(request);
    let request_id = Some(RequestId::of(request).as_str().to_owned());
    Answer::Page(Page::public(status, &Failed { title, text: text.to_owned(), request_id }))
}
