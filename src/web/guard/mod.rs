//! Request and data guards: the facts on which a handler may rely. None forwards.

pub mod bearer;
pub mod client_address;
pub mod form_body;
pub mod json_body;
pub mod origin;
pub mod page;
pub mod proof;
pub mod rate_limited;
pub mod reauthenticated;
pub mod sign_out_proof;
pub mod verified_identity;

use rocket::http::Status;
use rocket::outcome::Outcome;
use rocket::request::Request;

/// Makes a type Rocket's guard of a request, by the code that returns it or the problem.
macro_rules! request_guard {
    ($guard:ty, |$request:ident| $checked:expr) => {
        #[rocket::async_trait]
        impl<'r> rocket::request::FromRequest<'r> for $guard {
            type Error = ();

            async fn from_request($request: &'r rocket::Request<'_>) -> rocket::request::Outcome<Self, ()> {
                $crate::web::guard::outcome($checked, $request)
            }
        }
    };
}
pub(crate) use request_guard;

/// Makes a type Rocket's guard of a request and its body, by the code that returns it or the problem.
macro_rules! data_guard {
    ($guard:ty, |$request:ident, $data:ident| $checked:expr) => {
        #[rocket::async_trait]
        impl<'r> rocket::data::FromData<'r> for $guard {
            type Error = ();

            async fn from_data(
                $request: &'r rocket::Request<'_>,
                $data: rocket::Data<'r>,
            ) -> rocket::data::Outcome<'r, Self> {
                $crate::web::guard::outcome($checked, $request)
            }
        }
    };
}
use data_guard;

pub use self::bearer::{Bearer, Renaming, SignedIn};
pub use self::form_body::FormBody;
pub use self::json_body::JsonBody;
pub use self::origin::ClientOrigin;
pub use self::page::{Page, PresentedToken};
pub use self::proof::{NewKey, Proof};
pub use self::rate_limited::RateLimited;
pub use self::reauthenticated::{NewIdentity, OtherAccount, Reauthenticated};
pub use self::sign_out_proof::SignOutProof;
pub use self::verified_identity::VerifiedIdentity;
use crate::web::Problem;

/// Returns what Rocket manages. Without it, the request is an internal error.
fn state<'r, T: Send + Sync + 'static>(request: &'r Request<'_>) -> Result<&'r T, Problem> {
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
