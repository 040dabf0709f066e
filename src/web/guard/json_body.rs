//! The request's body as one JSON object without duplicate members (RFC 8259).

use std::time::Duration;

use rocket::data::{ByteUnit, Data, FromData, Limits, Outcome};
use rocket::request::Request;
use serde_json::Value;
use tokio::time::timeout;

use super::outcome;
use crate::domain::json::Object;
use crate::domain::text::printable;
use crate::web::openapi::problems::ErrorResponses;
use crate::web::problem::{ErrorCode, Problem};

/// The longest wait for a whole body. A phone on a bad network needs a second or two.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest name of a member that an answer repeats, in bytes. A token is longer.
const MAX_NAME: usize = 32;

/// Reads a JSON body, up to Rocket's `limits.json` (1 MiB by default).
///
/// # Errors
/// The body has another media type or an encoding, is too large or too slow, or is not one JSON object.
pub async fn read(request: &Request<'_>, data: Data<'_>) -> Result<Object, Problem> {
    parse(&bytes(request, data).await?)
}

/// Like [`read`], but the body is optional.
///
/// # Errors
/// See [`read`].
pub async fn read_if_any(request: &Request<'_>, data: Data<'_>) -> Result<Option<Object>, Problem> {
    if request.content_type().is_none() {
        return Ok(None);
    }
    let body = bytes(request, data).await?;
    // Some clients name the type of a body that they do not send.
    if body.is_empty() { Ok(None) } else { parse(&body).map(Some) }
}

/// Returns the string that the last name in the path stands for in an object.
///
/// # Errors
/// The member is missing, perhaps because it is misspelt, or is not a string.
pub fn required<'b>(object: &'b Object, path: &str) -> Result<&'b str, Problem> {
    let name = path.rsplit('.').next().unwrap_or(path);
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let problem = match object.get(name) {
        Some(Value::String(text)) => return Ok(text),
        Some(_) => format!("`{path}` must be a string"),
        None if object.members().any(|(other, _)| other != name && plain(other) == plain(name)) => {
            format!("`{path}` is missing (did you misspell it? another member has almost this name)")
        }
        None => format!("`{path}` is missing"),
    };
    Err(Problem::new(ErrorCode::InvalidRequest, problem))
}

/// Returns an optional member that is true or false.
///
/// # Errors
/// The member is something else.
pub fn flag(object: &Object, name: &str) -> Result<Option<bool>, Problem> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Problem::new(ErrorCode::InvalidRequest, format!("`{name}` must be true or false"))),
    }
}

/// Refuses other members than these in a body that changes or ends something: what a misspelt one asked for would be
/// lost.
///
/// # Errors
/// There is another member. It is named if it is as short as a name: nothing else that was sent may be repeated.
pub fn only(object: &Object, known: &[&str], whose: &str) -> Result<(), Problem> {
    let Some((name, _)) = object.members().find(|(name, _)| !known.contains(name)) else { return Ok(()) };
    let name =
        if name.len() <= MAX_NAME { format!(", `{}`", printable(name, MAX_NAME)) } else { String::new() };
    let detail = format!("{whose} has an unknown member{name}; there are `{}`", known.join("`, `"));
    Err(Problem::new(ErrorCode::InvalidRequest, detail))
}

fn malformed(detail: &'static str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}

fn parse(body: &[u8]) -> Result<Object, Problem> {
    Object::parse(body).map_err(|_| malformed("the body must be one JSON object without repeated members"))
}

async fn bytes(request: &Request<'_>, data: Data<'_>) -> Result<Vec<u8>, Problem> {
    if !request.content_type().is_some_and(|content_type| content_type.is_json()) {
        return Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            "`Content-Type` must be `application/json`",
        ));
    }
    whole(request, data, request.limits().get("json").unwrap_or(Limits::JSON)).await
}

/// Reads a body of any media type up to a limit.
///
/// # Errors
/// The body has an encoding, is too large, or is too slow.
pub async fn whole(request: &Request<'_>, data: Data<'_>, limit: ByteUnit) -> Result<Vec<u8>, Problem> {
    if request.headers().contains("Content-Encoding") {
        return Err(Problem::new(ErrorCode::UnsupportedMediaType, "the body must not be compressed"));
    }
    let body = timeout(BODY_TIMEOUT, data.open(limit).into_bytes())
        .await
        .map_err(|_| malformed("the body did not arrive in time"))?
        .map_err(|_| malformed("the body could not be read"))?;
    if !body.is_complete() {
        return Err(Problem::new(
            ErrorCode::PayloadTooLarge,
            "the body is larger than any valid request body",
        ));
    }
    Ok(body.into_inner())
}

/// A JSON body.
///
/// - **Succeeds** when the body is one JSON object.
/// - **Fails** otherwise; see [`read`].
/// - **Forwards** never.
#[derive(Debug)]
pub struct JsonBody(pub Object);

impl ErrorResponses for JsonBody {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        [ErrorCode::InvalidRequest, ErrorCode::PayloadTooLarge, ErrorCode::UnsupportedMediaType].into_iter()
    }
}

#[rocket::async_trait]
impl<'r> FromData<'r> for JsonBody {
    type Error = ();

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r, Self> {
        outcome(read(request, data).await.map(Self), request)
    }
}
