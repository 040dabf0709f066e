//! Reads a provider's response: JSON of bounded size, in bounded time.

use std::borrow::Cow;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::domain::json::Object;

/// The timeout of a whole call, retry included. It is a little below the five seconds that callers are
/// promised, so that our own response is sent within them.
pub(super) const DEADLINE: Duration = Duration::from_millis(4_500);

/// The largest response read, in bytes. A tokeninfo response has about one thousand.
const MAX_BODY: usize = 64 * 1024;

/// The provider gave no usable response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no usable answer from the provider: {class}{}{}",
    why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default(),
    if check.is_empty() { String::new() } else { format!("; check {}", check.join(" and ")) }
)]
pub struct Unavailable {
    /// The class of the failure: one word for logs and metrics.
    pub class: &'static str,
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
        Self::new("malformed_token")
    }

    pub(super) const fn new(class: &'static str) -> Self {
        Self::after(class, 2)
    }

    /// Creates a failure with its own time before a retry, in seconds.
    pub(super) const fn after(class: &'static str, retry_after: u32) -> Self {
        Self { class, why: None, check: Vec::new(), retry_after, by_token: false }
    }

    /// Returns the same as something that the token may have caused.
    pub(super) fn by_token(self) -> Self {
        Self { by_token: true, ..self }
    }

    /// Returns the same of an answer about a token. One that makes no sense may be the work of whoever made the token.
    pub(super) fn about_token(self) -> Self {
        let by_token = ["not_json", "too_large"].contains(&self.class);
        Self { by_token, ..self }
    }

    /// Returns true if a working provider would not have failed in this way. A response that makes no sense
    /// may be caused by a crafted token, so it is no outage.
    pub(super) fn is_outage(&self) -> bool {
        !self.by_token && self.class != "not_introspected"
    }

    /// Reports an endpoint that introspects only other kinds of tokens.
    pub(super) fn not_introspected() -> Self {
        let why = "the provider introspects no id_tokens; \"jwks\" verifies them without asking";
        Self { why: Some(why.to_owned()), ..Self::misconfigured("not_introspected", "verify") }
    }

    pub(super) fn misconfigured(class: &'static str, setting: &'static str) -> Self {
        Self { check: vec![Cow::Borrowed(setting)], ..Self::new(class) }
    }

    /// Returns the failure of a token endpoint that does not take us for who we are.
    pub(super) fn client_authentication() -> Self {
        let check = ["client_id", "client_secret", "token_auth"].map(Cow::Borrowed).to_vec();
        Self { check, ..Self::new("client_authentication") }
    }
}

/// Reads the claims about a user: one JSON object.
pub(super) async fn json(response: Response) -> Result<Object, Unavailable> {
    Object::told(&text(response, &["application/json"]).await?).map_err(|_| Unavailable::new("not_json"))
}

/// Reads a document of one of these media types: one JSON object.
pub(super) async fn object(response: Response, types: &[&str]) -> Result<Object, Unavailable> {
    Object::parse(&text(response, types).await?).map_err(|_| Unavailable::new("not_json"))
}

async fn text(response: Response, types: &[&str]) -> Result<Vec<u8>, Unavailable> {
    // The request offers no encoding, so no response is decompressed: a zip bomb stays small.
    let essence = response.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| essence(value.as_bytes()));
    let expected = types.iter().any(|one| essence.eq_ignore_ascii_case(one.as_bytes()));
    if !expected || response.headers().contains_key(CONTENT_ENCODING) {
        return Err(Unavailable::new("content_type"));
    }
    body(response).await
}

/// Returns a content type without its parameters.
fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii()
}

/// Reads the whole body.
pub(super) async fn body(mut response: Response) -> Result<Vec<u8>, Unavailable> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| Unavailable::new("body"))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Unavailable::new("too_large"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
