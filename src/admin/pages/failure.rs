//! Failures of a page's handler. The catcher shows them as a page, and the log gets the cause.

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};

use crate::admin::pages::catcher::Failed;
use crate::admin::pages::guard::page_of;
use crate::admin::pages::page::Page;
use crate::web::http::request_id::RequestId;
use crate::web::{ErrorCode, Problem};
use crate::{database, provider};

pub(super) enum Failure {
    /// A status that the catcher explains.
    Status(Status),
    Problem(Problem),
    /// A conflict with the current state (409), with its reason.
    Conflict(&'static str),
    /// A failed sign-in, with a text for the page and a problem for the log.
    NotSignedIn(Status, &'static str, Box<Problem>),
    /// The page of a form again, with what is wrong with it.
    Shown(Page),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<database::Error> for Failure {
    fn from(error: database::Error) -> Self {
        Self::Problem(error.into())
    }
}

impl Failure {
    pub fn at(provider: &str, error: provider::Error) -> Self {
        match &error {
            provider::Error::Unavailable(unavailable) if !unavailable.check.is_empty() => {
                Self::misconfigured(provider, unavailable.to_string())
            }
            provider::Error::Unavailable(_) => Self::Problem(Problem::from(error).about(provider)),
            provider::Error::Refused(_) => Self::NotSignedIn(
                Status::BadRequest,
                INVALID,
                Problem::from(error).about(provider).into(),
            ),
        }
    }

    /// Returns the failure of a sign-in that cannot succeed with these settings, and names the
    /// cause for the operator.
    pub fn misconfigured(provider: &str, cause: String) -> Self {
        tracing::warn!(provider, cause, "staff_sign_in_misconfigured");
        let detail = "the identity provider cannot be used with these settings";
        let problem = Problem::new(ErrorCode::ProviderUnavailable, detail)
            .logged(cause)
            .about(provider);
        Self::NotSignedIn(Status::ServiceUnavailable, MISCONFIGURED, problem.into())
    }
}

const INVALID: &str = "The identity provider's answer is not valid. Begin again.";
const MISCONFIGURED: &str = "The identity provider does not work with the settings of this service. Trying again does \
     not help: the operator has to correct them, and the service's log names them.";

impl<'r> Responder<'r, 'static> for Failure {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        match self {
            Self::Status(status) => Err(status),
            Self::Problem(problem) => Err(problem.keep(request).status()),
            Self::Shown(page) => page.respond_to(request),
            Self::Conflict(text) => {
                let problem = Problem::malformed(text);
                told(
                    request,
                    Status::Conflict,
                    "That was not done",
                    text,
                    problem,
                )
            }
            Self::NotSignedIn(status, text, problem) => {
                told(request, status, "You are not signed in", text, *problem)
            }
        }
    }
}

fn told(
    request: &Request<'_>,
    status: Status,
    title: &'static str,
    text: &str,
    problem: Problem,
) -> response::Result<'static> {
    problem.keep(request);
    let back = (status == Status::Conflict).then(|| page_of(request));
    let request_id = (status.code >= 500).then(|| RequestId::of(request).as_str());
    Failed {
        title,
        text,
        back,
        request_id,
    }
    .page(request, status)
    .respond_to(request)
}
