//! Users and identities as JSON, and the JSON responses.

use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::accounts::identities::IdentityRow;
use crate::domain::{CustomClaims, User};

/// A JSON answer that must not be cached.
pub(crate) struct Json<T>(pub Status, pub T);

impl<'r, T: Serialize> Responder<'r, 'static> for Json<T> {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let json = serde_json::to_vec(&self.1).map_err(|_| Status::InternalServerError)?;
        Bytes(self.0, json).respond_to(request)
    }
}

/// Like [`Json`], but already serialised.
pub(crate) struct Bytes(pub Status, pub Vec<u8>);

impl<'r> Responder<'r, 'static> for Bytes {
    fn respond_to(self, _: &'r Request<'_>) -> response::Result<'static> {
        Response::build()
            .status(self.0)
            .header(ContentType::new("application", "json").with_params(("charset", "utf-8")))
            .header(Header::new("Cache-Control", "no-store"))
            .sized_body(self.1.len(), std::io::Cursor::new(self.1))
            .ok()
    }
}

/// An answer that says for how long it may be cached.
#[derive(rocket::Responder)]
pub(crate) struct Cached<R>(R, Header<'static>);

impl<R> Cached<R> {
    pub fn never(answer: R) -> Self {
        Self(answer, Header::new("Cache-Control", "no-store"))
    }

    pub fn for_five_minutes(answer: R) -> Self {
        Self(answer, Header::new("Cache-Control", "public, max-age=300"))
    }
}

/// An account at an identity provider that is linked to a user.
#[derive(Serialize, ToSchema)]
pub(crate) struct Identity {
    /// The identity's id.
    id: Uuid,
    /// The provider's name, as in the path of the sign-in.
    #[schema(example = "google")]
    provider: String,
    /// The account's `sub` at the provider.
    #[schema(example = "110169484474386276334")]
    subject: String,
    /// The account's e-mail address at the last sign-in.
    #[schema(required = true, example = "ada@example.com")]
    email: Option<String>,
    /// The time at which the identity was linked.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// True for the identity that this session was opened with. Unlinking it ends the session.
    #[schema(example = true)]
    current: bool,
}

impl Identity {
    /// Describes an identity in a session that was opened with `current`.
    pub(super) fn new(row: IdentityRow, current: Uuid) -> Self {
        let IdentityRow {
            id,
            provider,
            subject,
            email,
            created_at,
            ..
        } = row;
        Self {
            id,
            provider,
            subject,
            email,
            created_at,
            current: id == current,
        }
    }
}

/// A user with the claims that the product's backend has set.
#[derive(Serialize, ToSchema)]
pub(super) struct UserWithClaims {
    #[serde(flatten)]
    pub user: User,
    /// The claims in the user's access tokens from the next refresh on; `{}` for no claims.
    #[schema(value_type = Object)]
    pub claims: CustomClaims,
}
