//! The request's body as one JSON object without duplicate members (RFC 8259).

use std::time::Duration;

use rocket::data::{ByteUnit, Data, Limits, ToByteUnit};
use rocket::request::Request;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::shared::{data_guard, state};
use crate::domain::{Object, json, printable};
use crate::web::http::fields;
use crate::web::{ErrorCode, Problem, errors};

/// The longest wait for a whole body. A phone on a bad network needs a second or two.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest name of a member that an answer repeats, in bytes. A token is longer.
const MAX_NAME: usize = 32;

/// The length in bytes up to which a body counts as small. Bodies from apps are small, so large
/// ones from elsewhere cannot keep them out.
const SMALL: usize = 16 << 10;

/// The memory for the bodies that are arriving, in bytes, of all requests together. A body takes
/// its declared length of it before it is read.
#[derive(Debug)]
pub struct Budget {
    small: Semaphore,
    large: Semaphore,
}

impl Default for Budget {
    /// With the buffers of its connection, a body takes some three times its length.
    fn default() -> Self {
        Self {
            small: Semaphore::new(16 << 20),
            large: Semaphore::new(4 << 20),
        }
    }
}

impl Budget {
    fn take(&self, length: usize) -> Result<SemaphorePermit<'_>, Problem> {
        let part = if length <= SMALL {
            &self.small
        } else {
            &self.large
        };
        part.try_acquire_many(u32::try_from(length).unwrap_or(u32::MAX))
            .map_err(|_| Problem {
                by_token: true,
                ..Problem::unavailable(1, "too many bodies are arriving at once")
            })
    }
}

/// Reads a JSON body, up to Rocket's `limits.json` (here 64 KiB by default).
pub async fn read(request: &Request<'_>, data: Data<'_>) -> Result<Object, Problem> {
    parse(&bytes(request, data).await?)
}

/// Like [`read`], but the body is optional. A body without a media type is not ignored: a request
/// in it would be lost.
pub async fn read_if_any(request: &Request<'_>, data: Data<'_>) -> Result<Option<Object>, Problem> {
    let headers = request.headers();
    let has_body = headers.contains("Transfer-Encoding")
        || headers
            .get_one("Content-Length")
            .is_some_and(|length| length != "0");
    if fields::media_type(request).is_none() && !has_body {
        return Ok(None);
    }
    let body = bytes(request, data).await?;
    // Some clients name the type of a body that they do not send.
    if body.is_empty() {
        Ok(None)
    } else {
        parse(&body).map(Some)
    }
}

/// Returns the member of an object that has the path's last name, which must be a string.
pub fn required<'b>(object: &'b Object, path: &str) -> Result<&'b str, Problem> {
    let name = path.rsplit('.').next().unwrap_or(path);
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let problem = match object.get(name) {
        Some(Value::String(text)) => return Ok(text),
        Some(_) => format!("`{path}` must be a string"),
        None if object
            .members()
            .any(|(other, _)| other != name && plain(other) == plain(name)) =>
        {
            format!(
                "`{path}` is missing (did you misspell it? another member has almost this name)"
            )
        }
        None => format!("`{path}` is missing"),
    };
    Err(Problem::malformed(problem))
}

/// Returns the member of an object that has the path's last name, or `None` if it is absent or
/// `null`.
pub fn optional<'b, T: Deserialize<'b>>(
    object: &'b Object,
    path: &str,
    rule: &str,
) -> Result<Option<T>, Problem> {
    let value = object.get(path.rsplit('.').next().unwrap_or(path));
    // The message of serde repeats the value.
    let wrong = |_| Problem::malformed(format!("`{path}` {rule}"));
    value
        .map(|value| T::deserialize(value).map_err(wrong))
        .transpose()
}

/// Returns an optional member that is true or false.
pub fn flag(object: &Object, path: &str) -> Result<Option<bool>, Problem> {
    optional(object, path, "must be true or false")
}

/// Refuses unknown members in a body that changes or ends something: a misspelt member would have
/// no effect. The message names such a member only if it is as short as a name: no other data of
/// the request may be repeated.
pub fn only(object: &Object, known: &[&str], whose: &str) -> Result<(), Problem> {
    let Some((name, _)) = object.members().find(|(name, _)| !known.contains(name)) else {
        return Ok(());
    };
    let name = named(name);
    let known = known.join("`, `");
    Err(Problem::malformed(format!(
        "{whose} has an unknown member{name}; there are `{known}`"
    )))
}

/// Returns an unknown name from a request for a message, or nothing if it is too long for a name.
pub fn named(name: &str) -> String {
    if name.len() <= MAX_NAME {
        format!(", `{}`", printable(name, MAX_NAME))
    } else {
        String::new()
    }
}

fn parse(body: &[u8]) -> Result<Object, Problem> {
    Object::parse(body).map_err(|error| match error {
        json::Error::TooManyValues(most) => {
            Problem::malformed(format!("the body has more than {most} values"))
        }
        _ => Problem::malformed("the body must be one JSON object without repeated members"),
    })
}

async fn bytes(request: &Request<'_>, data: Data<'_>) -> Result<Vec<u8>, Problem> {
    if !fields::is_json(request) {
        return Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            "`Content-Type` must be `application/json`",
        ));
    }
    whole(
        request,
        data,
        request.limits().get("json").unwrap_or(Limits::JSON),
    )
    .await
}

/// Reads a body of any media type up to a limit.
pub async fn whole(
    request: &Request<'_>,
    data: Data<'_>,
    limit: ByteUnit,
) -> Result<Vec<u8>, Problem> {
    if request.headers().contains("Content-Encoding") {
        return Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            "the body must not be compressed",
        ));
    }
    let budget: &Budget = state(request)?;
    let limit = usize::try_from(limit.as_u64()).unwrap_or(usize::MAX);
    let declared = request
        .headers()
        .get_one("Content-Length")
        .and_then(|length| length.parse().ok());
    let arrived = timeout(BODY_TIMEOUT, arriving(budget, data, declared, limit)).await;
    arrived.unwrap_or_else(|_| Err(Problem::malformed("the body did not arrive in time")))
}

/// Reads a body into as much memory as it has bytes. Rocket's own buffer doubles, and beside it the
/// old half may stay.
async fn arriving(
    budget: &Budget,
    data: Data<'_>,
    declared: Option<usize>,
    limit: usize,
) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        Problem::new(
            ErrorCode::PayloadTooLarge,
            "the body is larger than any valid one",
        )
    };
    let unreadable = |_| Problem::malformed("the body could not be read");
    if declared.is_some_and(|declared| declared > limit) {
        return Err(too_large());
    }
    // A body in chunks declares no length: it counts as small until it is larger.
    let expected = declared.unwrap_or(SMALL).min(limit);
    let mut place = budget.take(expected)?;
    let mut stream = data.open(limit.saturating_add(1).bytes());
    let mut body = Vec::with_capacity(expected);
    loop {
        if body.len() < body.capacity() {
            if stream.read_buf(&mut body).await.map_err(unreadable)? == 0 {
                return Ok(body);
            }
            continue;
        }
        let mut next = [0];
        if stream.read(&mut next).await.map_err(unreadable)? == 0 {
            return Ok(body);
        }
        if body.len() >= limit {
            return Err(too_large());
        }
        drop(place);
        place = budget.take(limit)?;
        body.reserve_exact(limit - body.len());
        body.extend(next);
    }
}

/// A JSON body.
///
/// - **Succeeds** when the body is one JSON object.
/// - **Fails** otherwise; see [`read`].
#[derive(Debug)]
pub struct JsonBody(Object);

impl JsonBody {
    /// Returns the values that a handler reads from the body, and drops the body: the rest of it
    /// does not wait for the database.
    pub fn read<T>(self, parse: impl FnOnce(&Object) -> Result<T, Problem>) -> Result<T, Problem> {
        parse(&self.0)
    }
}

errors!(
    JsonBody: [
        ErrorCode::InvalidRequest,
        ErrorCode::PayloadTooLarge,
        ErrorCode::UnsupportedMediaType,
        ErrorCode::ServiceUnavailable,
    ]
);

data_guard!(JsonBody, |request, data| read(request, data)
    .await
    .map(Self));
