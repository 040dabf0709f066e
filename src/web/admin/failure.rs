//! What a page's handler fails with: the catcher shows it in the pages' clothes, and the log tells
//! the cause.

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};

use super::catcher::Failed;
use super::page::Page;
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
                Problem::new(Kind::InvalidRequest, text).keep(request);
                let view = Failed { title: "That was not done", text: text.to_owned(), request_id: None };
                Page::public(Status::Conflict, &view).respond_to(request)
            }
        }
    }
}
