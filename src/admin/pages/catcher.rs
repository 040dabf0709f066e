//! Error pages under `/admin`.

use rocket::http::{Method, Status};
use rocket::response::Redirect;
use rocket::{Catcher, Request, catch, catchers as collect};
use serde::Serialize;
use url::form_urlencoded;

use crate::admin::pages::guard::{is_out_of_date, page_of, staff};
use crate::admin::pages::page::{Answer, Page};
use crate::web::http::request_id::RequestId;
use crate::web::{ErrorCode, Problem};

pub(super) fn catchers() -> Vec<Catcher> {
    collect![default]
}

/// The data of the page of a failure.
#[derive(Serialize)]
pub(super) struct Failed<'r> {
    pub title: &'static str,
    pub text: &'r str,
    /// The page of the form that was refused, with what was typed there.
    pub back: Option<String>,
    pub request_id: Option<&'r str>,
}

impl Failed<'_> {
    pub(super) fn page(&self, request: &Request<'_>, status: Status) -> Page {
        Page::for_sender(request, status, "admin/error", self)
    }
}

/// Redirects to the sign-in, and back afterwards, if no member of staff is signed in. Otherwise
/// shows the failure.
#[catch(default)]
async fn default(status: Status, request: &Request<'_>) -> Answer {
    if status == Status::Unauthorized {
        let next: String = form_urlencoded::byte_serialize(page_of(request).as_bytes()).collect();
        let undone = if request.method() == Method::Post {
            "&undone=yes"
        } else {
            ""
        };
        Problem::new(ErrorCode::InvalidAccessToken, "nobody is signed in").keep(request);
        return Answer::Left(Redirect::to(format!("/admin/sign-in?next={next}{undone}")));
    }
    let (title, text) = match status.code {
        400 | 413 | 422 => (
            "That did not work",
            "The form is incomplete or too long. Nothing was done.",
        ),
        403 if is_out_of_date(request) => (
            "This form is out of date",
            "Nothing was done. You have signed in again since its page was opened, or it is not a form of this service. \
             Open the page again.",
        ),
        403 => (
            "Not allowed",
            "Your role does not allow this. Nothing was done. Ask an admin.",
        ),
        404 | 405 => ("Nothing here", "There is no such page or user."),
        429 => ("Too many requests", "Wait a minute, then try again."),
        503 => (
            "Not now",
            "The database or the identity provider does not answer. Try again in a minute.",
        ),
        _ => (
            "Something went wrong",
            "The service made a mistake. Tell the operator the request ID below.",
        ),
    };
    let kind = match status.code {
        404 | 405 => ErrorCode::NotFound,
        400..=499 => ErrorCode::InvalidRequest,
        503 => ErrorCode::ServiceUnavailable,
        _ => ErrorCode::InternalError,
    };
    Problem::new(kind, title).keep(request);
    if matches!(status.code, 404 | 405) {
        // No guard has run before a route was found.
        let _ = staff(request).await;
    }
    let goes_back = request.method() == Method::Post && status != Status::TooManyRequests;
    let back = goes_back.then(|| page_of(request));
    let request_id = Some(RequestId::of(request).as_str());
    Answer::Right(
        Failed {
            title,
            text,
            back,
            request_id,
        }
        .page(request, status),
    )
}
