//! One call to a provider, with one retry after a failure that may be temporary.
//!
//! The request may hold a token, so no error of the HTTP client leaves this file.

use std::future::Future;

use reqwest::header::RETRY_AFTER;
use reqwest::{RequestBuilder, Response, StatusCode};

use super::Error;
use super::answer::{Class, Unavailable};
use crate::causes;
use crate::config::CERTIFICATE;

/// The longest `Retry-After` that is passed on to callers, in seconds.
const MAX_RETRY_AFTER: u32 = 60;

/// The failure of one attempt. Only a transient one is retried.
pub(super) enum Failure {
    Final(Error),
    Transient(Unavailable),
}

impl From<Unavailable> for Failure {
    fn from(unavailable: Unavailable) -> Self {
        Self::Final(unavailable.into())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Final(error) => error,
            Failure::Transient(unavailable) => unavailable.into(),
        }
    }
}

/// Makes an attempt, and retries once after a transient failure.
pub(super) async fn retry_once<T, A>(attempt: impl Fn() -> A) -> Result<T, Error>
where
    A: Future<Output = Result<T, Failure>>,
{
    let outcome = match attempt().await {
        Err(Failure::Transient(_)) => attempt().await,
        done => done,
    };
    outcome.map_err(Error::from)
}

/// Sends a request and waits for the head of the response.
pub(super) async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    request.send().await.map_err(|error| Failure::Transient(unreached(error)))
}

/// Returns what a request failed with before there was an answer. A certificate is a matter for the operator.
pub(super) fn unreached(error: reqwest::Error) -> Unavailable {
    let class = if error.is_connect() { Class::Connect } else { Class::Connection };
    let cause = cause(error);
    let why = names_certificate(&cause).then(|| format!("{cause}; {CERTIFICATE}"));
    Unavailable { why, ..Unavailable::new(class) }
}

/// Returns true when that is a cause of TLS, which does not trust a certificate.
pub(super) fn names_certificate(cause: &str) -> bool {
    cause.contains("certificate")
}

/// Sends a request like [`send`], but returns the root cause of a failure as text. That text comes from the
/// operating system or from TLS, so it holds neither the URL nor a token.
pub(super) async fn reach(request: RequestBuilder) -> Result<Response, String> {
    request.send().await.map_err(cause)
}

fn cause(error: reqwest::Error) -> String {
    causes::root(&error.without_url())
}

/// Classifies the status of an unusable response. `setting` is the one that is likely to be wrong if the
/// provider answers with a redirect or a 4xx.
pub(super) fn unusable(response: &Response, setting: &'static str) -> Failure {
    let status = response.status();
    match status {
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Failure::Transient(Unavailable {
            retry_after: retry_after(response),
            ..Unavailable::new(Class::Status5xx)
        }),
        StatusCode::TOO_MANY_REQUESTS => {
            Unavailable { retry_after: retry_after(response), ..Unavailable::new(Class::Status429) }.into()
        }
        _ if status.is_client_error() => Unavailable::misconfigured(Class::Status4xx, setting).into(),
        _ if status.is_redirection() => Unavailable::misconfigured(Class::Status3xx, setting).into(),
        _ if status.is_server_error() => Unavailable::new(Class::Status5xx).into(),
        _ => Unavailable::new(Class::StatusOther).into(),
    }
}

/// Returns the provider's `Retry-After`, limited to what callers can be expected to wait.
fn retry_after(response: &Response) -> u32 {
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    header.and_then(|text| text.parse().ok()).unwrap_or(2).clamp(1, MAX_RETRY_AFTER)
}
