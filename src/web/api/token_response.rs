//! The answers that carry a credential (RFC 6749 §5.1).

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::{Bytes, User};
use crate::config;
use crate::domain::user;
use crate::session::refresh::Refreshed;
use crate::session::sign_in::Opened;
use crate::store::users::{self, SignedIn};
use crate::web::metrics;

/// A credential (RFC 6749 §5.1).
#[derive(Serialize, ToSchema)]
pub(super) struct Credential<'a> {
    /// For `Authorization: Bearer …`, here and at every other service. A JWT, but none of the app's business.
    access_token: &'a str,
    token_type: TokenType,
    /// Seconds from now until the access token expires.
    expires_in: u32,
    /// For the next refresh, once. Replaces the one before: keep only this one, where no other app can read it.
    refresh_token: &'a str,
    /// Seconds from now until the refresh token expires unless it is used.
    refresh_expires_in: u32,
}

/// How the access token is sent (RFC 6750).
#[derive(Serialize, ToSchema)]
enum TokenType {
    Bearer,
}

impl<'a> Credential<'a> {
    const fn new(
        access_token: &'a str,
        expires_in: u32,
        refresh_token: &'a str,
        refresh_expires_in: u32,
    ) -> Self {
        Self { access_token, token_type: TokenType::Bearer, expires_in, refresh_token, refresh_expires_in }
    }
}

/// A credential, and whose it is.
#[derive(Serialize, ToSchema)]
#[schema(as = SignedIn)]
pub(super) struct SignInBody<'a> {
    #[serde(flatten)]
    credential: Credential<'a>,
    outcome: Outcome,
    user: User,
    identity: Identity,
}

/// How the identity found its user: `created` made a new one, `linked` added the identity to the one who has its
/// verified e-mail address, `signed_in` knew it already.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Created,
    Linked,
    SignedIn,
}

/// The identity that was signed in with.
#[derive(Serialize, ToSchema)]
#[schema(as = SignedInIdentity)]
struct Identity {
    /// Unlink it by this.
    id: Uuid,
    /// As in the path.
    provider: String,
    /// The token's `sub`.
    subject: String,
    /// The token's address, as the provider spells it.
    #[schema(required = true)]
    email: Option<String>,
}

impl From<user::Identity> for Identity {
    fn from(identity: user::Identity) -> Self {
        let user::Identity { id, provider, subject, email } = identity;
        Self { id, provider, subject, email }
    }
}

/// A credential on its way to the client: 201 when a user was created, else 200.
pub(super) struct TokenResponse {
    status: Status,
    body: Result<Vec<u8>, serde_json::Error>,
    /// How a sign-in ended, for the metrics.
    outcome: Option<metrics::SignedIn>,
}

impl TokenResponse {
    /// The answer to a sign-in.
    pub(super) fn signed_in(opened: Opened, lifetimes: config::Session) -> Self {
        let Opened { signed_in: SignedIn { outcome, user, identity }, access_token, refresh_token } = opened;
        let (status, outcome, counted) = match outcome {
            users::Outcome::Created => (Status::Created, Outcome::Created, metrics::SignedIn::CREATED),
            users::Outcome::Linked => (Status::Ok, Outcome::Linked, metrics::SignedIn::LINKED),
            users::Outcome::SignedIn => (Status::Ok, Outcome::SignedIn, metrics::SignedIn::KNOWN),
        };
        let body = serde_json::to_vec(&SignInBody {
            // No token outlives a session that has just begun (`config::session`).
            credential: Credential::new(
                access_token.expose(),
                lifetimes.access_token_ttl,
                refresh_token.expose(),
                lifetimes.refresh_token_ttl,
            ),
            outcome,
            user: user.into(),
            identity: identity.into(),
        });
        Self { status, body, outcome: Some(counted) }
    }

    /// The answer to a refresh.
    pub(super) fn refreshed(refreshed: &Refreshed, lifetimes: config::Session) -> Self {
        let Refreshed { access_token, refresh_token, refresh_expires_in } = refreshed;
        let expires_in = lifetimes.access_token_ttl;
        let credential =
            Credential::new(access_token.expose(), expires_in, refresh_token.expose(), *refresh_expires_in);
        Self { status: Status::Ok, body: serde_json::to_vec(&credential), outcome: None }
    }
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
