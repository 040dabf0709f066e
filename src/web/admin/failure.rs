//! What a page's handler fails with: the catcher shows it in the pages' clothes, and the log tells
//! the cause.

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};

use super::catcher::Failed;
use super::page::Page;
use crate::session::staff_looks;
use crate::web::problem::{Kind, Problem};
use crate::{provider, store};

/// A failure on its way to the catcher.
pub(super) enum Failure {
    /// One that the catcher has words for.
    Status(Status),
    /// One whose cause the log needs.
    Problem(Problem),
    /// What was asked for does not go with how things are: 409, and why.
    Conflict(&'static str),
    /// Nobody is signed in: what the page says of it, and what the log does.
    NotSignedIn(Status, &'static str, Problem),
}

impl From<staff_looks::Error> for Failure {
    fn from(error: staff_looks::Error) -> Self {
        match error {
            staff_looks::Error::NotStaff => Self::Status(Status::Unauthorized),
            staff_looks::Error::Store(error) => error.into(),
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Self::Problem(error.into())
    }
}

impl From<provider::Error> for Failure {
    fn from(error: provider::Error) -> Self {
        Self::Problem(error.into())
    }
}

impl<'r> Responder<'r, 'static> for Failure {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        match self {
            Self::Status(status) => Err(status),
            Self::Problem(problem) => Err(problem.keep(request).status()),
            Self::Conflict(text) => {
                let problem = Problem::new(Kind::InvalidRequest, text);
                told(request, Status::Conflict, "That was not done", text, problem)
            }
            Self::NotSignedIn(status, text, problem) => {
                told(request, status, "You are not signed in", text, problem)
            }
        }
    }
}

/// A page of its own for a failure.
fn told(
    request: &Request<'_>,
    status: Status,
    title: &'static str,
    text: &str,
    problem: Problem,
) -> response::Result<'static> {
    problem.keep(request);
    let view = Failed { title, text: text.to_owned(), request_id: None };
    Page::public(status, &view).respond_to(request)
}
