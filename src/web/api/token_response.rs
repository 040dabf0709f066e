//! Responses with a credential: in our form, and in the form of RFC 6749 §5.1.

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::view::{Bytes, UserWithClaims};
use crate::accounts::tokens::Tokens;
use crate::accounts::users::{Outcome, SignedIn};
use crate::domain::user::Identity;
use crate::secret::Secret;
use crate::web::guard::Page;

/// An access token and a refresh token.
#[derive(Serialize, ToSchema)]
pub(super) struct Credential<'a> {
    /// The access token for `Authorization: Bearer …`. It is a JWT, but apps should treat it as
    /// opaque.
    access_token: &'a str,
    token_type: TokenType,
    /// The seconds until the access token expires.
    expires_in: u32,
    /// The time at which the access token expires, by the service's clock. An app uses
    /// `expires_in`, since the device's clock may be wrong.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// The refresh token, which can be used once and replaces the previous one. Store it where
    /// other apps cannot read it. Absent if it is in the page's cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = &str, required = false)]
    refresh_token: Option<&'a str>,
    /// The seconds until the refresh token expires.
    refresh_expires_in: u32,
}

/// The type of the access token, which is the scheme of `Authorization`: `Bearer` (RFC 6750), or
/// `DPoP` (RFC 9449 §5) if the session is bound to a key.
#[derive(Serialize, ToSchema)]
enum TokenType {
    Bearer,
    #[serde(rename = "DPoP")]
    Dpop,
}

/// An access token and a refresh token for a standard client (RFC 6749 §5.1).
#[derive(Serialize, ToSchema)]
pub(super) struct TokenGrant<'a> {
    /// The access token for `Authorization: Bearer …`.
    access_token: &'a str,
    token_type: TokenType,
    /// The seconds until the access token expires.
    expires_in: u32,
    /// The refresh token, which can be used once and replaces the previous one.
    refresh_token: &'a str,
    /// The seconds until the refresh token expires.
    refresh_expires_in: u32,
}

/// An access token and a refresh token, with the user and the identity.
#[derive(Serialize, ToSchema)]
#[schema(as = SignedIn)]
pub(super) struct SignInBody<'a> {
    #[serde(flatten)]
    credential: Credential<'a>,
    outcome: Outcome,
    user: UserWithClaims,
    identity: Identity,
}

/// A response with a credential: 201 if a user was created, else 200.
pub(super) struct TokenResponse {
    status: Status,
    body: Result<Vec<u8>, serde_json::Error>,
    /// The outcome of a sign-in, for the metrics.
    outcome: Option<Outcome>,
}

impl<'a> Credential<'a> {
    /// Shows tokens that were issued at `now` (seconds since the epoch). A page gets the refresh
    /// token in its cookie.
    fn new(tokens: &'a Tokens, now: i64, page: Option<&Page<'_>>) -> Self {
        Self {
            access_token: tokens.access_token.expose(),
            token_type: tokens.into(),
            expires_in: tokens.expires_in,
            expires_at: after(now, tokens.expires_in),
            refresh_token: in_body(&tokens.refresh_token, tokens.refresh_expires_in, page),
            refresh_expires_in: tokens.refresh_expires_in,
        }
    }
}

impl From<&Tokens> for TokenType {
    fn from(tokens: &Tokens) -> Self {
        if tokens.bound {
            Self::Dpop
        } else {
            Self::Bearer
        }
    }
}

impl TokenResponse {
    pub(super) fn signed_in(
        (signed_in, tokens): (SignedIn, Tokens),
        now: i64,
        page: Option<&Page<'_>>,
    ) -> Self {
        let SignedIn {
            outcome,
            user,
            identity,
            claims,
        } = signed_in;
        let status = if outcome == Outcome::Created {
            Status::Created
        } else {
            Status::Ok
        };
        let body = serde_json::to_vec(&SignInBody {
            credential: Credential::new(&tokens, now, page),
            outcome,
            user: UserWithClaims { user, claims },
            identity,
        });
        Self {
            status,
            body,
            outcome: Some(outcome),
        }
    }

    pub(super) fn refreshed(tokens: &Tokens, now: i64, page: Option<&Page<'_>>) -> Self {
        let body = serde_json::to_vec(&Credential::new(tokens, now, page));
        Self {
            status: Status::Ok,
            body,
            outcome: None,
        }
    }

    /// Answers the refresh of a standard client.
    pub(super) fn granted(tokens: &Tokens) -> Self {
        let body = serde_json::to_vec(&TokenGrant {
            access_token: tokens.access_token.expose(),
            token_type: tokens.into(),
            expires_in: tokens.expires_in,
            refresh_token: tokens.refresh_token.expose(),
            refresh_expires_in: tokens.refresh_expires_in,
        });
        Self {
            status: Status::Ok,
            body,
            outcome: None,
        }
    }
}

/// Returns the refresh token for the body, or sets the page's cookie.
fn in_body<'a>(
    token: &'a Secret<String>,
    seconds: u32,
    page: Option<&Page<'_>>,
) -> Option<&'a str> {
    let Some(page) = page else {
        return Some(token.expose());
    };
    page.keep(token, seconds);
    None
}

fn after(now: i64, seconds: u32) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(now + i64::from(seconds))
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

impl<'r> Responder<'r, 'static> for TokenResponse {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        if let Some(outcome) = self.outcome {
            request.local_cache(|| outcome);
        }
        let body = self.body.map_err(|_| Status::InternalServerError)?;
        Bytes(self.status, body).respond_to(request)
    }
}
