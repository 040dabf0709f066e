//! One call to a provider, with one retry after a failure that may be temporary.
//!
//! The request may hold a token, so no error of the HTTP client leaves this file.

use std::future::Future;

use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};
use url::Url;

use super::answer::{Class, Unavailable};
use crate::causes;
use crate::config::CERTIFICATE;

/// The longest `Retry-After` that is passed on to callers, in seconds.
const MAX_RETRY_AFTER: u32 = 60;

/// The failure of one attempt. Only a transient one is retried.
pub(super) enum Failure<E> {
    Final(E),
    Transient(Unavailable),
}

impl<E: From<Unavailable>> From<Unavailable> for Failure<E> {
    fn from(unavailable: Unavailable) -> Self {
        Self::Final(unavailable.into())
    }
}

impl<E: From<Unavailable>> Failure<E> {
    pub(super) fn into_error(self) -> E {
        match self {
            Self::Final(error) => error,
            Self::Transient(unavailable) => unavailable.into(),
        }
    }
}

/// Makes an attempt, and retries once after a transient failure.
pub(super) async fn retry_once<T, E, A>(attempt: impl Fn() -> A) -> Result<T, E>
where
    E: From<Unavailable>,
    A: Future<Output = Result<T, Failure<E>>>,
{
    let outcome = match attempt().await {
        Err(Failure::Transient(_)) => attempt().await,
        done => done,
    };
    outcome.map_err(Failure::into_error)
}

pub(super) async fn send<E>(request: RequestBuilder) -> Result<Response, Failure<E>> {
    request
        .send()
        .await
        .map_err(|error| Failure::Transient(unreached(error)))
}

/// Returns the failure of a request that got no response. A wrong certificate is a matter for the
/// operator.
pub(super) fn unreached(error: reqwest::Error) -> Unavailable {
    let class = if error.is_connect() {
        Class::Connect
    } else {
        Class::Connection
    };
    // The root cause comes from the operating system or from TLS, so it holds neither the URL nor a
    // token.
    let cause = causes::root(&error.without_url());
    let why = cause
        .contains("certificate")
        .then(|| format!("{cause}; {CERTIFICATE}"));
    Unavailable {
        why,
        seen: Some(format!("is unreachable ({cause})")),
        ..Unavailable::new(class)
    }
}

/// Classifies the status of an unusable response. `setting` is the setting that is likely wrong if
/// the provider responds with a redirect or a 4xx.
pub(super) fn unusable<E: From<Unavailable>>(
    response: &Response,
    setting: &'static str,
) -> Failure<E> {
    let unavailable = unavailable(response, setting);
    if is_transient(response.status()) {
        Failure::Transient(unavailable)
    } else {
        unavailable.into()
    }
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// Classifies the status of an unusable response like [`unusable`], where there is no retry.
pub(super) fn unavailable(response: &Response, setting: &'static str) -> Unavailable {
    let status = response.status();
    let unavailable = match status {
        StatusCode::TOO_MANY_REQUESTS => {
            Unavailable::after(Class::Status429, retry_after(response))
        }
        _ if status.is_client_error() => Unavailable::misconfigured(Class::Status4xx, setting),
        _ if status.is_redirection() => Unavailable::misconfigured(Class::Status3xx, setting),
        _ if is_transient(status) => Unavailable::after(Class::Status5xx, retry_after(response)),
        _ if status.is_server_error() => Unavailable::new(Class::Status5xx),
        _ => Unavailable::new(Class::StatusOther),
    };
    Unavailable {
        seen: Some(seen(response)),
        ..unavailable
    }
}

/// Describes the status of a response to an operator.
fn seen(response: &Response) -> String {
    let status = response.status();
    let code = status.as_u16();
    if status.is_redirection() {
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|location| location.to_str().ok());
        let elsewhere = location.and_then(|location| Url::parse(location).ok());
        let host = elsewhere
            .as_ref()
            .and_then(Url::host_str)
            .unwrap_or("the same host");
        return format!("redirects to {host} ({code})");
    }
    match code {
        429 => "responds with 429 (too many requests)".into(),
        500..=599 => format!("fails ({code})"),
        _ => format!("responds with {code}"),
    }
}

/// Returns the provider's `Retry-After`, limited to what callers can be expected to wait.
fn retry_after(response: &Response) -> u32 {
    let header = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    header
        .and_then(|text| text.parse().ok())
        .unwrap_or(2)
        .clamp(1, MAX_RETRY_AFTER)
}
