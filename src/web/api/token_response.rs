//! The answer to a sign-in: the credential (RFC 6749 §5.1) and who it is for.

use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::config;
use crate::session::sign_in::SignedIn;
use crate::store::users::Outcome;

/// A credential on its way to the client: 201 when a user was created, else 200.
pub(super) struct TokenResponse {
    signed_in: SignedIn,
    lifetimes: config::Session,
}

impl TokenResponse {
    pub(super) const fn new(signed_in: SignedIn, lifetimes: config::Session) -> Self {
        Self { signed_in, lifetimes }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: u32,
    refresh_token: &'a str,
    refresh_expires_in: u32,
    outcome: &'static str,
    user: User<'a>,
    identity: Identity<'a>,
}

#[derive(Serialize)]
struct User<'a> {
    id: Uuid,
    email: Option<&'a str>,
    email_verified: bool,
    name: Option<&'a str>,
    picture: Option<&'a str>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

#[derive(Serialize)]
struct Identity<'a> {
    id: Uuid,
    provider: &'a str,
    subject: &'a str,
    email: Option<&'a str>,
}

impl<'r> Responder<'r, 'static> for TokenResponse {
    fn respond_to(self, _: &'r Request<'_>) -> response::Result<'static> {
        let SignedIn { outcome, user, identity, access_token, refresh_token } = &self.signed_in;
        let (status, outcome) = match outcome {
            Outcome::Created => (Status::Created, "created"),
            Outcome::Linked => (Status::Ok, "linked"),
            Outcome::SignedIn => (Status::Ok, "signed_in"),
        };
        let body = Body {
            access_token: access_token.expose(),
            token_type: "Bearer",
            expires_in: self.lifetimes.access_token_ttl,
            refresh_token: refresh_token.expose(),
            refresh_expires_in: self.lifetimes.refresh_token_ttl,
            outcome,
            user: User {
                id: user.id,
                email: user.email.as_deref(),
                email_verified: user.email_verified,
                name: user.name.as_deref(),
                picture: user.picture.as_deref(),
                created_at: user.created_at,
            },
            identity: Identity {
                id: identity.id,
                provider: &identity.provider,
                subject: &identity.subject,
                email: identity.email.as_deref(),
            },
        };
        let json = serde_json::to_vec(&body).map_err(|_| Status::InternalServerError)?;
        Response::build()
            .status(status)
            .header(ContentType::JSON.with_params(("charset", "utf-8")))
            .header(Header::new("Cache-Control", "no-store"))
            .sized_body(json.len(), std::io::Cursor::new(json))
            .ok()
    }
}
