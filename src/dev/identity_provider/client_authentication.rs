//! Client authentication at the token endpoint: the client's id and secret in the `Authorization` header or in the
//! form (RFC 6749 §2.3.1), never in both.

use std::convert::Infallible;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rocket::http::RawStr;
use rocket::request::{FromRequest, Outcome, Request};

use super::IdentityProvider;
use super::parameters::Parameters;
use crate::secret::Secret;

/// The `Authorization` header.
///
/// - **Succeeds** always.
#[derive(Debug)]
pub(super) enum Authorization {
    Absent,
    Basic {
        id: String,
        secret: Secret<String>,
    },
    /// Another scheme, or more than one header.
    Other,
}

/// The reason why the client is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    TwoMethods,
    Unknown,
}

impl Authorization {
    fn of(request: &Request<'_>) -> Self {
        let mut headers = request.headers().get("Authorization");
        match (headers.next(), headers.next()) {
            (None, _) => Self::Absent,
            (Some(header), None) => Self::basic(header).unwrap_or(Self::Other),
            (Some(_), Some(_)) => Self::Other,
        }
    }

    /// Parses HTTP Basic (RFC 7617 §2). Both halves are encoded once more, as RFC 6749 §2.3.1 requires.
    fn basic(header: &str) -> Option<Self> {
        let (scheme, credentials) = header.split_once(' ')?;
        let credentials =
            STANDARD.decode(credentials.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("Basic"))?;
        let (id, secret) = std::str::from_utf8(&credentials).ok()?.split_once(':')?;
        let decode = |half| RawStr::new(half).url_decode().ok().map(String::from);
        Some(Self::Basic { id: decode(id)?, secret: Secret::new(decode(secret)?) })
    }

    /// Checks that the caller is the known client.
    pub fn check(&self, provider: &IdentityProvider, form: &Parameters) -> Result<(), Refused> {
        let (id, secret) = match self {
            Self::Absent => (form.get("client_id"), form.get("client_secret")),
            Self::Basic { .. } | Self::Other if form.get("client_secret").is_some() => {
                return Err(Refused::TwoMethods);
            }
            Self::Basic { id, secret } => (Some(id.as_str()), Some(secret.expose().as_str())),
            Self::Other => return Err(Refused::Unknown),
        };
        // The form may repeat the id that is in the header.
        let same = form.get("client_id").is_none_or(|repeated| id == Some(repeated));
        let known = id.zip(secret).is_some_and(|(id, secret)| {
            let expected = provider.client_secret.expose().as_bytes();
            id == provider.client_id && verify_slices_are_equal(secret.as_bytes(), expected).is_ok()
        });
        (same && known).then_some(()).ok_or(Refused::Unknown)
    }
}

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Authorization {
    type Error = Infallible;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Infallible> {
        Outcome::Success(Self::of(request))
    }
}
