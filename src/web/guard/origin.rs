//! The origin of a request.

use std::convert::Infallible;

use rocket::request::{FromRequest, Outcome, Request};

use super::client_address;
use crate::domain::{Origin, printable};
use crate::web::http::request_id::RequestId;

/// The longest `User-Agent` that is stored, in characters.
const MAX_USER_AGENT: usize = 256;

/// The client's IP address and user agent, and the request's id.
///
/// See [`client_address`] for the headers that are trusted.
///
/// - **Succeeds** always.
#[derive(Debug)]
pub struct ClientOrigin(pub Origin);

impl ClientOrigin {
    pub fn of(request: &Request<'_>) -> Self {
        let user_agent = request.headers().get_one("User-Agent");
        Self(Origin {
            ip: client_address::of(request),
            user_agent: user_agent.map(|text| printable(text, MAX_USER_AGENT)),
            request_id: RequestId::of(request).as_str().to_owned(),
        })
    }
}

#[rocket::async_trait]
impl<'r> FromRequest<'r> for ClientOrigin {
    type Error = Infallible;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Infallible> {
        Outcome::Success(Self::of(request))
    }
}
