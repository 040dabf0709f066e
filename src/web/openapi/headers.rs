//! The headers of answers.

use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};

use super::examples::REQUEST_ID;
use crate::web::problem::{Entry, ErrorCode};

pub const REQUEST_ID_HEADER: &str = "X-Request-Id";
const RETRY_AFTER: &str = "Retry-After";
const CHALLENGE: &str = "WWW-Authenticate";
const NONCE: &str = "DPoP-Nonce";

/// Returns the headers that the errors of a status have, or may have.
pub fn of_problem(entries: &[Entry]) -> impl Iterator<Item = &'static str> {
    let wait = entries
        .iter()
        .any(|entry| matches!(entry.status, 429 | 503));
    let any = |kinds: &[ErrorCode]| {
        entries
            .iter()
            .any(|entry| kinds.iter().any(|kind| kind.entry().error == entry.error))
    };
    let nonce = any(&[ErrorCode::UseDpopNonce, ErrorCode::InvalidDpopProof]);
    let challenge = nonce || any(&[ErrorCode::InvalidAccessToken, ErrorCode::InvalidApiKey]);
    [
        wait.then_some(RETRY_AFTER),
        challenge.then_some(CHALLENGE),
        nonce.then_some(NONCE),
    ]
    .into_iter()
    .flatten()
}

pub fn reference(name: &str) -> RefOr<Header> {
    RefOr::Ref(Ref::new(format!("#/components/headers/{name}")))
}

pub fn all() -> [(&'static str, Header); 4] {
    [
        (
            REQUEST_ID_HEADER,
            header(
                Type::String,
                "The id of the request in the service's log. Include it in bug reports. An error's `request_id` has the same value.",
                json!(REQUEST_ID),
            ),
        ),
        (
            RETRY_AFTER,
            header(
                Type::Integer,
                "The seconds to wait before repeating the request.",
                json!(1),
            ),
        ),
        (
            CHALLENGE,
            header(
                Type::String,
                "The challenge of RFC 6750, sent with `invalid_access_token` and `invalid_api_key`, or of RFC 9449. It has no `error` parameter if the request had no token.",
                json!(r#"Bearer realm="vestibule", error="invalid_token""#),
            ),
        ),
        (
            NONCE,
            header(
                Type::String,
                "The nonce for the next proof (RFC 9449 §8). Every answer to a request with a `DPoP` header has it, too.",
                json!("AMDLYGZhJjKGQ5pXVfjQNg"),
            ),
        ),
    ]
}

fn header(of: Type, description: &str, example: Value) -> Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(SchemaType::Type(of))))
        .description(Some(description))
        .example(Some(example))
        .build()
}
