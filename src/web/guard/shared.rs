//! The guards' common parts: their outcome for Rocket, the state that Rocket manages, and the
//! provider in the path.

use rocket::http::Status;
use rocket::outcome::Outcome;
use rocket::request::Request;

use crate::provider::{Provider, Providers};
use crate::web::problem::{ErrorCode, Problem};

/// Makes a type Rocket's guard of a request, by the code that returns it or the problem.
macro_rules! request_guard {
    ($guard:ty, |$request:ident| $checked:expr) => {
        #[rocket::async_trait]
        impl<'r> rocket::request::FromRequest<'r> for $guard {
            type Error = ();

            async fn from_request(
                $request: &'r rocket::Request<'_>,
            ) -> rocket::request::Outcome<Self, ()> {
                $crate::web::guard::shared::outcome($checked, $request)
            }
        }
    };
}
pub(crate) use request_guard;

/// Makes a type Rocket's guard of a request and its body, by the code that returns it or the
/// problem.
macro_rules! data_guard {
    ($guard:ty, |$request:ident, $data:ident| $checked:expr) => {
        #[rocket::async_trait]
        impl<'r> rocket::data::FromData<'r> for $guard {
            type Error = ();

            async fn from_data(
                $request: &'r rocket::Request<'_>,
                $data: rocket::Data<'r>,
            ) -> rocket::data::Outcome<'r, Self> {
                $crate::web::guard::shared::outcome($checked, $request)
            }
        }
    };
}
pub(super) use data_guard;

/// Returns the state of this type that Rocket manages. Without it, the request is an internal
/// error.
pub(super) fn state<'r, T: Send + Sync + 'static>(
    request: &'r Request<'_>,
) -> Result<&'r T, Problem> {
    request.rocket().state().ok_or_else(Problem::internal)
}

/// Returns a guard's outcome, and keeps its problem with the request.
pub(crate) fn outcome<T, F>(
    result: Result<T, Problem>,
    request: &Request<'_>,
) -> Outcome<T, (Status, ()), F> {
    match result {
        Ok(value) => Outcome::Success(value),
        Err(problem) => Outcome::Error((problem.keep(request).status(), ())),
    }
}

/// Returns the provider that the last segment of the path names.
pub(super) fn provider_in_path<'r>(request: &'r Request<'_>) -> Result<&'r Provider, Problem> {
    let providers: &Providers = state(request)?;
    let name = request.uri().path().segments().last();
    named(providers, name.unwrap_or_default())
}

pub(crate) fn named<'p>(providers: &'p Providers, name: &str) -> Result<&'p Provider, Problem> {
    let missing = || {
        Problem::new(
            ErrorCode::ProviderNotFound,
            "no provider with this name is configured",
        )
    };
    providers.get(name).ok_or_else(missing)
}
