//! Reads a provider's response: JSON of bounded size, in bounded time.

use std::borrow::Cow;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};

use crate::domain::json::Object;

/// The timeout of a whole call, retry included. It is a little below the five seconds that callers are
/// promised, so that our own response is sent within them.
pub(super) const DEADLINE: Duration = Duration::from_millis(4_500);

/// The largest response read, in bytes. A tokeninfo response has about one thousand.
const MAX_BODY: usize = 64 * 1024;

/// The class of a failure. The names are those of logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Class {
    /// The connection ended within the body.
    Body,
    /// The circuit breaker is open.
    BreakerOpen,
    /// The provider rejects our client credentials.
    ClientAuthentication,
    /// No connection could be made.
    Connect,
    /// The connection ended before the answer.
    Connection,
    /// The answer has another media type, or is compressed.
    ContentType,
    /// The endpoint contradicts the token.
    Disagreement,
    /// The endpoint reports a failure with status 200.
    #[strum(serialize = "error_in_200")]
    ErrorIn200,
    /// The provider returned an `id_token` that is not a token.
    MalformedToken,
    /// The discovery document cannot be used.
    Metadata,
    /// The token endpoint accepts no client secret.
    NoClientSecretAccepted,
    /// No document was fetched.
    NoDocument,
    /// The endpoint is neither set nor discovered.
    NoEndpoint,
    /// The token endpoint returned no `id_token`.
    NoIdToken,
    /// The key set has no usable key.
    NoKeys,
    /// No token could be built for a probe.
    NoProbe,
    /// The endpoint introspects only other kinds of tokens.
    NotIntrospected,
    /// The endpoint does not answer as introspection does.
    NotIntrospection,
    /// The answer is not one JSON object.
    NotJson,
    /// A document was refused.
    Refused,
    /// All permits of the bulkhead are taken.
    #[strum(serialize = "no_place")]
    Saturated,
    /// The answer is a redirection.
    #[strum(serialize = "status_3xx")]
    Status3xx,
    /// The provider limits the rate of calls.
    #[strum(serialize = "status_429")]
    Status429,
    /// The answer is a 4xx that is not about the token.
    #[strum(serialize = "status_4xx")]
    Status4xx,
    /// The provider failed.
    #[strum(serialize = "status_5xx")]
    Status5xx,
    /// The answer has another unexpected status.
    StatusOther,
    /// The provider did not answer in time.
    Timeout,
    /// The answer is too large.
    TooLarge,
    /// The token names a key that is not published.
    UnknownKey,
}

impl Class {
    /// Returns the name in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The provider gave no usable response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no usable answer from the provider: {}{}{}",
    class.name(),
    why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default(),
    if check.is_empty() { String::new() } else { format!("; check {}", check.join(" and ")) }
)]
pub struct Unavailable {
    /// The class of the failure.
    pub class: Class,
    /// The failure in a sentence, for the log, if one word is not enough.
    pub why: Option<String>,
    /// The settings one of which is likely to be wrong, if a retry will not help.
    pub check: Vec<Cow<'static, str>>,
    /// Seconds to wait before a retry.
    pub retry_after: u32,
    /// True if the token may have caused it. It then says nothing of the provider.
    pub by_token: bool,
}

impl Unavailable {
    /// Reports a provider that returned an `id_token` which is not a token.
    #[must_use]
    pub const fn malformed_token() -> Self {
        Self::new(Class::MalformedToken)
    }

    pub(super) const fn new(class: Class) -> Self {
        Self::after(class, 2)
    }

    /// Creates a failure with its own time before a retry, in seconds.
    pub(super) const fn after(class: Class, retry_after: u32) -> Self {
        Self { class, why: None, check: Vec::new(), retry_after, by_token: false }
    }

    /// Returns the same as something that the token may have caused.
    pub(super) fn by_token(self) -> Self {
        Self { by_token: true, ..self }
    }

    /// Returns the same of an answer about a token. One that makes no sense may be the work of whoever made the token.
    pub(super) fn about_token(self) -> Self {
        let by_token = matches!(self.class, Class::NotJson | Class::TooLarge);
        Self { by_token, ..self }
    }

    /// Returns true if a working provider would not have failed in this way. A response that makes no sense
    /// may be caused by a crafted token, so it is no outage.
    pub(super) fn is_outage(&self) -> bool {
        !self.by_token && self.class != Class::NotIntrospected
    }

    /// Reports an endpoint that introspects only other kinds of tokens.
    pub(super) fn not_introspected() -> Self {
        let why = "the provider introspects no id_tokens; \"jwks\" verifies them without asking";
        Self { why: Some(why.to_owned()), ..Self::misconfigured(Class::NotIntrospected, "verify") }
    }

    pub(super) fn misconfigured(class: Class, setting: &'static str) -> Self {
        Self { check: vec![Cow::Borrowed(setting)], ..Self::new(class) }
    }

    /// Returns the failure of a token endpoint that does not take us for who we are.
    pub(super) fn client_authentication() -> Self {
        let check = ["client_id", "client_secret", "token_auth"].map(Cow::Borrowed).to_vec();
        Self { check, ..Self::new(Class::ClientAuthentication) }
    }
}

/// Reads the claims about a user: one JSON object.
pub(super) async fn json(response: Response) -> Result<Object, Unavailable> {
    Object::told(&text(response, &["application/json"]).await?).map_err(|_| Unavailable::new(Class::NotJson))
}

/// Reads a document of one of these media types: one JSON object.
pub(super) async fn object(response: Response, types: &[&str]) -> Result<Object, Unavailable> {
    Object::parse(&text(response, types).await?).map_err(|_| Unavailable::new(Class::NotJson))
}

async fn text(response: Response, types: &[&str]) -> Result<Vec<u8>, Unavailable> {
    // The request offers no encoding, so no response is decompressed: a zip bomb stays small.
    if !types.iter().any(|one| has_media_type(&response, one))
        || response.headers().contains_key(CONTENT_ENCODING)
    {
        return Err(Unavailable::new(Class::ContentType));
    }
    body(response).await
}

/// Returns true if the response has this media type, with or without parameters.
pub(super) fn has_media_type(response: &Response, expected: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let essence = value.split(|&b| b == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(expected.as_bytes())
}

/// Reads the whole body.
pub(super) async fn body(mut response: Response) -> Result<Vec<u8>, Unavailable> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| Unavailable::new(Class::Body))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Unavailable::new(Class::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
