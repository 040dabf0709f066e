//! The call to a provider's token-information endpoint, such as Google's
//! `https://oauth2.googleapis.com/tokeninfo?id_token=…`.
//!
//! Whatever can go wrong is either the token's fault (400, 401, an error inside a 200) or the
//! provider's (everything else); nothing in between. The URL holds the token, so no error of the
//! HTTP client leaves this file.

use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use tokio::time::timeout;

use super::Error;
use crate::config::{Method, Provider};
use crate::domain::id_token::IdToken;
use crate::domain::json::Object;
use crate::domain::refusal::{Reason, Refusal};

/// The whole call, retry included. A little below the five seconds that callers are promised,
/// so that the answer, too, is within them.
const DEADLINE: Duration = Duration::from_millis(4_800);

/// Largest answer read, in bytes. A tokeninfo answer has about one thousand.
const MAX_BODY: usize = 64 * 1024;

/// Longest time that callers are told to wait, in seconds.
const MAX_RETRY_AFTER: u32 = 60;

/// The provider gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no usable answer from the provider: {class}")]
pub struct Unavailable {
    /// What went wrong, in one word for logs and metrics.
    pub class: &'static str,
    /// Whether the call itself is likely to be set up wrongly, so that waiting will not help.
    pub misconfigured: bool,
    /// Seconds to wait before trying again.
    pub retry_after: u32,
}

impl Unavailable {
    const fn new(class: &'static str) -> Self {
        Self { class, misconfigured: false, retry_after: 2 }
    }
}

/// One attempt's failure, and whether another attempt may help.
enum Failure {
    Final(Error),
    Transient(Unavailable),
}

impl From<Unavailable> for Failure {
    fn from(unavailable: Unavailable) -> Self {
        Self::Final(unavailable.into())
    }
}

/// Asks the provider about a token, and once more where the first attempt failed in a way that
/// a second one may mend.
pub(super) async fn ask(client: &Client, provider: &Provider, token: &IdToken) -> Result<Object, Error> {
    let attempts = async {
        match attempt(client, provider, token).await {
            Err(Failure::Transient(_)) => attempt(client, provider, token).await,
            done => done,
        }
    };
    match timeout(DEADLINE, attempts).await {
        Ok(Ok(claims)) => Ok(claims),
        Ok(Err(Failure::Final(error))) => Err(error),
        Ok(Err(Failure::Transient(unavailable))) => Err(unavailable.into()),
        Err(_) => Err(Unavailable::new("timeout").into()),
    }
}

async fn attempt(client: &Client, provider: &Provider, token: &IdToken) -> Result<Object, Failure> {
    let mut url = provider.tokeninfo_url.clone();
    let parameter = [("id_token", token.expose())];
    let request = match provider.tokeninfo_method {
        Method::Get => {
            url.query_pairs_mut().extend_pairs(parameter);
            client.get(url)
        }
        Method::Post => client.post(url).form(&parameter),
    };
    let response = request.send().await.map_err(|error| {
        Failure::Transient(Unavailable::new(if error.is_connect() { "connect" } else { "connection" }))
    })?;
    let status = response.status();
    match status {
        StatusCode::OK => claims(response).await,
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
            // Read to its end, the connection can serve the next call.
            let _ = body(response).await;
            Err(refused())
        }
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Err(Failure::Transient(Unavailable {
                retry_after: retry_after(&response),
                ..Unavailable::new("status_5xx")
            }))
        }
        StatusCode::TOO_MANY_REQUESTS => {
            Err(Unavailable { retry_after: retry_after(&response), ..Unavailable::new("status_429") }.into())
        }
        _ if status.is_client_error() => {
            Err(Unavailable { misconfigured: true, ..Unavailable::new("status_4xx") }.into())
        }
        _ if status.is_redirection() => {
            Err(Unavailable { misconfigured: true, ..Unavailable::new("status_3xx") }.into())
        }
        _ if status.is_server_error() => Err(Unavailable::new("status_5xx").into()),
        _ => Err(Unavailable::new("status_other").into()),
    }
}

fn refused() -> Failure {
    Failure::Final(Refusal::new(Reason::InvalidToken, "the provider does not accept the token").into())
}

async fn claims(response: Response) -> Result<Object, Failure> {
    // No encoding was offered, so none is undone: a bomb stays small.
    let json = response.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
    if !json || response.headers().contains_key(CONTENT_ENCODING) {
        return Err(Unavailable::new("content_type").into());
    }
    let body = body(response).await?;
    let claims = Object::parse(&body).map_err(|_| Unavailable::new("not_json"))?;
    match claims.str("error") {
        None if claims.get("error").is_none() => Ok(claims),
        Some("server_error" | "temporarily_unavailable") => Err(Unavailable::new("error_in_200").into()),
        _ => Err(refused()),
    }
}

fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
}

async fn body(mut response: Response) -> Result<Vec<u8>, Unavailable> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| Unavailable::new("body"))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Unavailable::new("too_large"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The provider's own wish, as far as callers can be expected to follow it.
fn retry_after(response: &Response) -> u32 {
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    header.and_then(|text| text.parse().ok()).unwrap_or(2).clamp(1, MAX_RETRY_AFTER)
}
