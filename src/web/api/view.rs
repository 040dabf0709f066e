//! How things look on the wire, and the JSON that carries them.

use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use serde::Serialize;
use time::OffsetDateTime;
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

/// An identity in a user's list.
#[derive(Serialize)]
pub(super) struct Identity {
    id: Uuid,
    provider: String,
    subject: String,
    email: Option<String>,
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
#[derive(Serialize)]
pub(super) struct User {
    id: Uuid,
    email: Option<String>,
    email_verified: bool,
    name: Option<String>,
    picture: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<user::User> for User {
    fn from(user: user::User) -> Self {
        let user::User { id, email, email_verified, name, picture, created_at } = user;
        Self { id, email, email_verified, name, picture, created_at }
    }
}
