//! The guard of limited routes, and the same check for sessions, which the bearer guard calls.
//!
//! Request guards run before data guards, so a limited route refuses before it reads the body or
//! asks a provider.

use std::marker::PhantomData;

use rocket::request::{FromRequest, Outcome, Request};
use uuid::Uuid;

use super::client_address;
use super::shared::{outcome, state};
use crate::web::http::rate_limit::{Key, Policy, RateLimits};
use crate::web::http::rate_limit_fields;
use crate::web::{ErrorCode, ErrorResponses, Problem};

/// A policy whose key is the client's IP address.
pub trait ByAddress: Send {
    const POLICY: Policy;
}

/// Names the policy of a limited route in its guard's type.
macro_rules! by_address {
    ($($(#[$doc:meta])* $policy:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $policy;

        impl ByAddress for $policy {
            const POLICY: Policy = Policy::$policy;
        }
    )*};
}

by_address! {
    /// Sign-ins, and other requests that ask a provider.
    SignIn,
    /// Sign-ins of staff, who may share one IP address with many phones.
    StaffSignIn,
    Refresh,
    /// Requests with access tokens.
    Bearer,
    /// Messages of providers, from an IP address that has sent genuine ones.
    ProviderEvents,
    UnknownSender,
    /// Requests with a cookie that may belong to a staff session.
    StaffPages,
    UnknownApiKey
}

/// A request that was counted and is within the limit of its IP address.
///
/// - **Succeeds** within the limit, and always when limits are switched off.
/// - **Fails** beyond it with `rate_limited`; the [`Problem`] is kept with the request.
#[derive(Debug)]
pub struct RateLimited<P>(PhantomData<P>);

impl<P> ErrorResponses for RateLimited<P> {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        [ErrorCode::RateLimited].into_iter()
    }
}

#[rocket::async_trait]
impl<'r, P: ByAddress> FromRequest<'r> for RateLimited<P> {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, ()> {
        outcome(
            admit_address::<P>(request).map(|()| Self(PhantomData)),
            request,
        )
    }
}

/// Counts a request against the limit of its IP address, but only once.
pub fn admit_address<P: ByAddress>(request: &Request<'_>) -> Result<(), Problem> {
    admit(
        request,
        P::POLICY,
        Key::address(client_address::of(request)),
    )
}

/// Counts a request of a session from the client's IP address, after the access token has been
/// verified and before the database is queried.
pub fn admit_session(request: &Request<'_>, session: Uuid) -> Result<(), Problem> {
    admit(
        request,
        Policy::Session,
        Key::session(session, client_address::of(request)),
    )
}

/// Counts a change of a user's name, from any session and any IP address.
pub fn admit_name(request: &Request<'_>, user: Uuid) -> Result<(), Problem> {
    admit(request, Policy::Name, Key::user(user))
}

pub fn admit_api_key(request: &Request<'_>, key: Uuid) -> Result<(), Problem> {
    admit(request, Policy::ApiKey, Key::api_key(key))
}

fn admit(request: &Request<'_>, policy: Policy, key: Key) -> Result<(), Problem> {
    let limits: &RateLimits = state(request)?;
    match rate_limit_fields::count(request, limits, policy, key) {
        Some(standing) if !standing.admitted => {
            let detail = match policy {
                Policy::SignIn | Policy::StaffSignIn => "too many sign-ins from this IP address",
                Policy::Refresh => "too many refreshes from this IP address",
                Policy::Session => "too many requests with this session from this IP address",
                Policy::Name => "too many changes of this user's name",
                Policy::Bearer => "too many requests with access tokens from this IP address",
                Policy::ProviderEvents => "too many messages from this IP address",
                Policy::UnknownSender => {
                    "too many messages from this IP address, none of which was genuine"
                }
                Policy::StaffPages => "too many requests for the admin pages from this IP address",
                Policy::ApiKey => "too many requests with this API key",
                Policy::UnknownApiKey => {
                    "too many requests with unknown API keys from this IP address"
                }
            };
            Err(Problem {
                retry_after: Some(standing.seconds),
                ..Problem::new(ErrorCode::RateLimited, detail)
            })
        }
        _ => Ok(()),
    }
}
