//! How things look on the wire, and the JSON that carries them.

use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::user;
use crate::store::identities::IdentityRow;

/// A JSON answer that nobody may keep.
pub(super) struct Json<T>(pub Status, pub T);

impl<'r, T: Serialize> Responder<'r, 'static> for Json<T> {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let json = serde_json::to_vec(&self.1).map_err(|_| Status::InternalServerError)?;
        Bytes(self.0, json).respond_to(request)
    }
}

/// The same, already serialised.
pub(super) struct Bytes(pub Status, pub Vec<u8>);

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

/// What a user signs in with: an account at an identity provider.
#[derive(Serialize, ToSchema)]
pub(super) struct Identity {
    /// Unlink it by this.
    id: Uuid,
    /// As in the path of the sign-in.
    provider: String,
    /// The account's `sub` at the provider.
    subject: String,
    /// The provider's latest address for the account.
    #[schema(required = true)]
    email: Option<String>,
    /// When it was linked.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<IdentityRow> for Identity {
    fn from(row: IdentityRow) -> Self {
        let IdentityRow { id, provider, subject, email, created_at } = row;
        Self { id, provider, subject, email, created_at }
    }
}

/// A user.
#[derive(Serialize, ToSchema)]
pub(super) struct User {
    /// Never reused: the only thing about a user that other services should keep. An access token's `sub`.
    id: Uuid,
    /// In lower case, unique among users; `null` when no provider gave one.
    #[schema(required = true)]
    email: Option<String>,
    /// Whether a provider vouches that the address is this person's.
    email_verified: bool,
    /// What the provider calls them.
    #[schema(required = true)]
    name: Option<String>,
    /// Address of a picture.
    #[schema(required = true)]
    picture: Option<String>,
    /// When they first signed in.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<user::User> for User {
    fn from(user: user::User) -> Self {
        let user::User { id, email, email_verified, name, picture, created_at } = user;
        Self { id, email, email_verified, name, picture, created_at }
    }
}
