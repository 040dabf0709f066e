//! Errors in the form of OAuth (RFC 6749 §5.2).

use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};
use rocket::serde::json::Json;
use serde_json::json;

use crate::web::problem::{ErrorCode, Problem};

/// An error response. The request log shows its description.
pub(super) struct OAuthError {
    pub status: Status,
    pub error: &'static str,
    pub description: &'static str,
}

impl OAuthError {
    pub const fn new(error: &'static str, description: &'static str) -> Self {
        Self { status: Status::BadRequest, error, description }
    }
}

impl<'r> Responder<'r, 'static> for OAuthError {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        Problem::new(ErrorCode::InvalidRequest, self.description).keep(request);
        let body = json!({ "error": self.error, "error_description": self.description });
        (self.status, Json(body)).respond_to(request)
    }
}
