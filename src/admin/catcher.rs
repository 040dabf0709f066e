//! Error pages under `/admin`.

use rocket::http::{Method, Status};
use rocket::response::Redirect;
use rocket::{Catcher, Request, catch, catchers as collect};
use serde::Serialize;
use url::form_urlencoded;

use crate::admin::guard::{is_out_of_date, page_of, staff};
use crate::admin::{Answer, Page};
use crate::web::http::request_id::RequestId;
use crate::web::{ErrorCode, Problem};

pub(super) fn catchers() -> Vec<Catcher> {
    collect![default]
}

#[derive(Serialize)]
struct Failed<'r> {
    title: &'static str,
    text: &'r str,
    /// The page of the form that was refused, with what was typed there.
    back: Option<String>,
    request_id: Option<&'r str>,
}

/// Returns the page of a failure, with a link back to the form that was refused, and with the id of the request.
pub(super) fn failed(
    request: &Request<'_>,
    status: Status,
    (title, text): (&'static str, &str),
    [goes_back, has_id]: [bool; 2],
) -> Page {
    let back = goes_back.then(|| page_of(request));
    let request_id = has_id.then(|| RequestId::of(request).as_str());
    Page::for_sender(request, status, "admin/error", &Failed { title, text, back, request_id })
}

/// Redirects to the sign-in, and back afterwards, if no member of staff is signed in. Otherwise shows the failure.
#[catch(default)]
async fn default(status: Status, request: &Request<'_>) -> Answer {
    if status == Status::Unauthorized {
        let next: String = form_urlencoded::byte_serialize(page_of(request).as_bytes()).collect();
        let undone = if request.method() == Method::Post { "&undone=yes" } else { "" };
        Problem::new(ErrorCode::InvalidAccessToken, "nobody is signed in").keep(request);
        return Answer::Left(Redirect::to(format!("/admin/sign-in?next={next}{undone}")));
    }
    let (title, text) = match status.code {
        400 | 413 | 422 => ("That did not work", "The form is incomplete or too long. Nothing was done."),
        403 if is_out_of_date(request) => (
            "This form is out of date",
            "Nothing was done. You have signed in again since its page was opened, or it is not a form of this service. \
             Open the page again.",
        ),
        403 => ("Not allowed", "Your role does not allow this. Nothing was done. Ask an admin."),
        404 | 405 => ("Nothing here", "There is no such page or user."),
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
    if matches!(status.code, 404 | 405) {
        // No guard has run before a route was found.
        let _ = staff(request).await;
    }
    let goes_back = request.method() == Method::Post && status != Status::TooManyRequests;
    Answer::Right(failed(request, status, (title, text), [goes_back, true]))
}
