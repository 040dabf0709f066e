//! Reads a provider's response: JSON of bounded size, in bounded time.

use std::borrow::Cow;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use tokio::time::error::Elapsed;

use crate::config;
use crate::domain::Object;
use crate::domain::json::MAX_DOCUMENT_VALUES;

/// The timeout of a whole call, retry included. It is a little below the five seconds that callers
/// are promised, so that our own response is sent within them.
pub(super) const DEADLINE: Duration = Duration::from_millis(4_500);

/// The largest response read, in bytes. A tokeninfo response has about one thousand.
const MAX_BODY: usize = 64 * 1024;

/// The class of a failure. Its name is used in logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Class {
    Body,
    BreakerOpen,
    ClientAuthentication,
    Connect,
    /// The connection ended before the answer.
    Connection,
    /// The answer has another media type, or is compressed.
    ContentType,
    /// The endpoint contradicts the token.
    Disagreement,
    #[strum(serialize = "error_in_200")]
    ErrorIn200,
    MalformedToken,
    Metadata,
    /// The provider signs its messages with the client secret, which is not set.
    NoClientSecret,
    NoClientSecretAccepted,
    NoDocument,
    NoEndpoint,
    NoIdToken,
    NoKeys,
    NoProbe,
    /// The token endpoint issues no token that could be revoked.
    NoToken,
    /// The endpoint introspects only other kinds of tokens.
    NotIntrospected,
    /// The endpoint does not answer as introspection does.
    NotIntrospection,
    NotJson,
    /// All permits of the bulkhead are taken.
    #[strum(serialize = "no_place")]
    Saturated,
    #[strum(serialize = "status_3xx")]
    Status3xx,
    #[strum(serialize = "status_429")]
    Status429,
    #[strum(serialize = "status_4xx")]
    Status4xx,
    #[strum(serialize = "status_5xx")]
    Status5xx,
    StatusOther,
    Timeout,
    TooLarge,
    /// The token names a key that is not published.
    UnknownKey,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no usable response from the provider: {}{}{}",
    self.class(),
    why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default(),
    if check.is_empty() { String::new() } else { format!("; check {}", check.join(" and ")) }
)]
pub struct Unavailable {
    pub(super) class: Class,
    /// The failure in a sentence, for the log, if one word is not enough.
    pub why: Option<String>,
    /// The provider's behaviour, for `vestibule check`.
    pub(super) seen: Option<String>,
    /// The settings to check, if a retry will not help: one of them is likely wrong.
    pub check: Vec<Cow<'static, str>>,
    /// Seconds to wait before a retry.
    pub retry_after: u32,
    /// True if the token itself may have caused the failure, so that it does not count as the
    /// provider's.
    pub by_token: bool,
}

impl Unavailable {
    /// Returns the class of the failure: one word for logs and metrics.
    pub fn class(&self) -> &'static str {
        self.class.into()
    }

    pub const fn malformed_token() -> Self {
        Self::new(Class::MalformedToken)
    }

    pub(super) const fn new(class: Class) -> Self {
        Self::after(class, 2)
    }

    /// Creates a failure with its own time before a retry, in seconds.
    pub(super) const fn after(class: Class, retry_after: u32) -> Self {
        Self {
            class,
            why: None,
            seen: None,
            check: Vec::new(),
            retry_after,
            by_token: false,
        }
    }

    /// Returns the failure, marked as possibly caused by the token.
    pub(super) fn by_token(self) -> Self {
        Self {
            by_token: true,
            ..self
        }
    }

    /// Returns the failure of a response about a token, marked if the token may have caused it: a
    /// crafted token can cause a response that makes no sense.
    pub(super) fn about_token(self) -> Self {
        let by_token = matches!(self.class, Class::NotJson | Class::TooLarge);
        Self { by_token, ..self }
    }

    /// Returns true if a working provider would not have failed in this way. A response that makes
    /// no sense may be caused by a crafted token, so it is no outage.
    pub(super) fn is_outage(&self) -> bool {
        !self.by_token && self.class != Class::NotIntrospected
    }

    pub(super) fn not_introspected() -> Self {
        let why = "the provider does not introspect id_tokens; set `verify` to \"jwks\"";
        Self {
            why: Some(why.to_owned()),
            ..Self::misconfigured(Class::NotIntrospected, "verify")
        }
    }

    pub(super) fn misconfigured(class: Class, setting: &'static str) -> Self {
        Self {
            check: vec![Cow::Borrowed(setting)],
            ..Self::new(class)
        }
    }

    /// Replaces field names by the settings' full names, which an operator knows.
    pub(super) fn named(self, provider: &config::Provider) -> Self {
        let check = self
            .check
            .iter()
            .map(|field| provider.setting(field).into())
            .collect();
        Self { check, ..self }
    }

    /// Returns the failure of an endpoint that does not accept our client authentication by these
    /// settings.
    pub(super) fn client_authentication(settings: &[&'static str]) -> Self {
        let check = settings.iter().copied().map(Cow::Borrowed).collect();
        Self {
            check,
            ..Self::new(Class::ClientAuthentication)
        }
    }
}

/// Returns the failure of a call that takes too long.
pub(super) fn late<T, E: From<Unavailable>>(_: Elapsed) -> Result<T, E> {
    Err(Unavailable::new(Class::Timeout).into())
}

/// Reads the claims about a user: one JSON object.
pub(super) async fn json(response: Response) -> Result<Object, Unavailable> {
    let text = text(response, &["application/json"]).await?;
    Object::told(&text, MAX_DOCUMENT_VALUES).map_err(|_| Unavailable::new(Class::NotJson))
}

/// Reads a document of one of these media types: one JSON object.
pub(super) async fn object(response: Response, types: &[&str]) -> Result<Object, Unavailable> {
    Object::document(&text(response, types).await?).map_err(|_| Unavailable::new(Class::NotJson))
}

async fn text(response: Response, types: &[&str]) -> Result<Vec<u8>, Unavailable> {
    // The request offers no encoding, so no response is decompressed: a zip bomb stays small.
    if !types.iter().any(|one| has_media_type(&response, one))
        || response.headers().contains_key(CONTENT_ENCODING)
    {
        let html = has_media_type(&response, "text/html");
        let seen = if html {
            "responds with an HTML page"
        } else {
            "does not respond with JSON"
        };
        return Err(Unavailable {
            seen: Some(seen.into()),
            ..Unavailable::new(Class::ContentType)
        });
    }
    body(response).await
}

/// Returns true if the response has this media type, with or without parameters.
fn has_media_type(response: &Response, expected: &str) -> bool {
    let value = response
        .headers()
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    let essence = value.split(|&b| b == b';').next().unwrap_or_default();
    essence
        .trim_ascii()
        .eq_ignore_ascii_case(expected.as_bytes())
}

pub(super) async fn body(mut response: Response) -> Result<Vec<u8>, Unavailable> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|_| Unavailable::new(Class::Body))?
    {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Unavailable::new(Class::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
