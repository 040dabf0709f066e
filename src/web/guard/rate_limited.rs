//! The guard of limited routes, and the same check for sessions, which the bearer guard calls.
//!
//! Request guards run before data guards, so a limited route refuses before it reads the body or asks a provider.

use std::marker::PhantomData;

use rocket::request::{FromRequest, Outcome, Request};
use rocket::{Ignite, Rocket, Sentinel};
use uuid::Uuid;

use super::{client_address, outcome};
use crate::web::http::rate_limit::{Key, Policy, RateLimits};
use crate::web::http::rate_limit_fields;
use crate::web::openapi::problems::ErrorResponses;
use crate::web::problem::{ErrorCode, Problem};

/// A policy whose key is the client's IP address.
pub trait ByAddress: Send {
    /// The policy.
    const POLICY: Policy;
}

/// Sign-ins, and other requests that ask a provider.
#[derive(Debug)]
pub struct SignIn;

impl ByAddress for SignIn {
    const POLICY: Policy = Policy::SignIn;
}

/// Sign-ins of staff, who may share one IP address with many phones.
#[derive(Debug)]
pub struct StaffSignIn;

impl ByAddress for StaffSignIn {
    const POLICY: Policy = Policy::StaffSignIn;
}

/// Refreshes.
#[derive(Debug)]
pub struct Refresh;

impl ByAddress for Refresh {
    const POLICY: Policy = Policy::Refresh;
}

/// Requests with a cookie that may belong to a staff session.
#[derive(Debug)]
pub struct StaffPages;

impl ByAddress for StaffPages {
    const POLICY: Policy = Policy::StaffPages;
}

/// Requests with unknown API keys.
#[derive(Debug)]
pub struct UnknownApiKey;

impl ByAddress for UnknownApiKey {
    const POLICY: Policy = Policy::UnknownApiKey;
}

/// A request that was counted and is within the limit of its IP address.
///
/// - **Succeeds** within the limit, and always when limits are switched off.
/// - **Fails** beyond it with `rate_limited`; the [`Problem`] is kept with the request.
/// - **Forwards** never.
#[derive(Debug)]
pub struct RateLimited<P>(PhantomData<P>);

impl<P> ErrorResponses for RateLimited<P> {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        [ErrorCode::RateLimited].into_iter()
    }
}

impl<P> Sentinel for RateLimited<P> {
    fn abort(rocket: &Rocket<Ignite>) -> bool {
        rocket.state::<RateLimits>().is_none()
    }
}

#[rocket::async_trait]
impl<'r, P: ByAddress> FromRequest<'r> for RateLimited<P> {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, ()> {
        outcome(admit_address::<P>(request).map(|()| Self(PhantomData)), request)
    }
}

/// Counts a request against the limit of its IP address, but only once.
///
/// # Errors
/// The IP address is over its limit.
pub fn admit_address<P: ByAddress>(request: &Request<'_>) -> Result<(), Problem> {
    admit(request, P::POLICY, Key::address(client_address::of(request)))
}

/// Counts a request of a session from the client's IP address, after the access token has been verified and before the
/// database is queried.
///
/// # Errors
/// The session is over its limit at this address.
pub fn admit_session(request: &Request<'_>, session: Uuid) -> Result<(), Problem> {
    admit(request, Policy::Session, Key::session(session, client_address::of(request)))
}

/// Counts a change of name by a session from the client's IP address.
///
/// # Errors
/// The session is over its limit at this address.
pub fn admit_name(request: &Request<'_>, session: Uuid) -> Result<(), Problem> {
    admit(request, Policy::Name, Key::session(session, client_address::of(request)))
}

/// Counts a request with an API key, after the key has been found.
///
/// # Errors
/// The key is over its limit.
pub fn admit_api_key(request: &Request<'_>, key: Uuid) -> Result<(), Problem> {
    admit(request, Policy::ApiKey, Key::api_key(key))
}

fn admit(request: &Request<'_>, policy: Policy, key: Key) -> Result<(), Problem> {
    let limits = request.rocket().state::<RateLimits>().ok_or_else(Problem::internal)?;
    match rate_limit_fields::count(request, limits, policy, key) {
        Some(standing) if !standing.admitted => {
            let detail = match policy {
                Policy::SignIn | Policy::StaffSignIn => "too many sign-ins from this IP address",
                Policy::Refresh => "too many refreshes from this IP address",
                Policy::Session => "too many requests with this session from this IP address",
                Policy::Name => "too many changes of the name with this session from this IP address",
                Policy::StaffPages => "too many requests for the admin pages from this IP address",
                Policy::ApiKey => "too many requests with this API key",
                Policy::UnknownApiKey => "too many requests with unknown API keys from this IP address",
            };
            Err(Problem {
                retry_after: Some(standing.seconds),
                ..Problem::new(ErrorCode::RateLimited, detail)
            })
        }
        _ => Ok(()),
    }
}
