//! The call to a provider's token-information endpoint, such as Google's
//! `https://oauth2.googleapis.com/tokeninfo?id_token=…`.
//!
//! Whatever can go wrong is either the token's fault (400, 401, an error inside a 200) or the
//! provider's (everything else); nothing in between. The URL holds the token, so no error of the
//! HTTP client leaves this file.

use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, StatusCode};
use tokio::time::timeout;

use super::Error;
use super::answer::{self, DEADLINE, Unavailable};
use crate::config::{Method, Provider};
use crate::domain::id_token::IdToken;
use crate::domain::json::Object;
use crate::domain::refusal::{Reason, Refusal};

/// Longest time that callers are told to wait, in seconds.
const MAX_RETRY_AFTER: u32 = 60;

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
            let _ = answer::body(response).await;
            Err(refused())
        }
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Err(Failure::Transient(Unavailable {
            retry_after: retry_after(&response),
            ..Unavailable::new("status_5xx")
        })),
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
    let claims = answer::json(response).await?;
    match claims.str("error") {
        None if claims.get("error").is_none() => Ok(claims),
        Some("server_error" | "temporarily_unavailable") => Err(Unavailable::new("error_in_200").into()),
        _ => Err(refused()),
    }
}

/// The provider's own wish, as far as callers can be expected to follow it.
fn retry_after(response: &Response) -> u32 {
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    header.and_then(|text| text.parse().ok()).unwrap_or(2).clamp(1, MAX_RETRY_AFTER)
}
