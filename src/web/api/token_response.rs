//! The answers that carry a credential (RFC 6749 §5.1).

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};
use serde::Serialize;
use uuid::Uuid;

use super::view::{Bytes, User};
use crate::config;
use crate::domain::user;
use crate::session::refresh::Refreshed;
use crate::session::sign_in::SignedIn;
use crate::store::users::Outcome;

/// A credential.
#[derive(Serialize)]
struct Credential<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: u32,
    refresh_token: &'a str,
    refresh_expires_in: u32,
}

impl<'a> Credential<'a> {
    const fn new(access_token: &'a str, refresh_token: &'a str, lifetimes: config::Session) -> Self {
        Self {
            access_token,
            token_type: "Bearer",
            expires_in: lifetimes.access_token_ttl,
            refresh_token,
            refresh_expires_in: lifetimes.refresh_token_ttl,
        }
    }
}

#[derive(Serialize)]
struct SignInBody<'a> {
    #[serde(flatten)]
    credential: Credential<'a>,
    outcome: &'static str,
    user: User,
    identity: Identity,
}

#[derive(Serialize)]
struct Identity {
    id: Uuid,
    provider: String,
    subject: String,
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
}

impl TokenResponse {
    /// The answer to a sign-in.
    pub(super) fn signed_in(signed_in: SignedIn, lifetimes: config::Session) -> Self {
        let SignedIn { outcome, user, identity, access_token, refresh_token } = signed_in;
        let (status, outcome) = match outcome {
            Outcome::Created => (Status::Created, "created"),
            Outcome::Linked => (Status::Ok, "linked"),
            Outcome::SignedIn => (Status::Ok, "signed_in"),
        };
        let body = serde_json::to_vec(&SignInBody {
            credential: Credential::new(access_token.expose(), refresh_token.expose(), lifetimes),
            outcome,
            user: user.into(),
            identity: identity.into(),
        });
        Self { status, body }
    }

    /// The answer to a refresh.
    pub(super) fn refreshed(refreshed: &Refreshed, lifetimes: config::Session) -> Self {
        let Refreshed { access_token, refresh_token } = refreshed;
        let credential = Credential::new(access_token.expose(), refresh_token.expose(), lifetimes);
        Self { status: Status::Ok, body: serde_json::to_vec(&credential) }
    }
}

impl<'r> Responder<'r, 'static> for TokenResponse {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let body = self.body.map_err(|_| Status::InternalServerError)?;
        Bytes(self.status, body).respond_to(request)
    }
}
