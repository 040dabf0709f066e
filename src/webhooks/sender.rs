//! Sends one message to a receiver: no redirect, no proxy, a bounded answer in bounded time.

use std::error::Error;
use std::iter;
use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::timeout;
use uuid::Uuid;

use super::failure::Failure;
use super::resolver::Resolver;
use crate::causes::root;
use crate::clock;
use crate::config::Webhook;
use crate::secret::Secret;

/// The timeout of a connection attempt, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a request up to the end of its answer.
pub const TIMEOUT: Duration = Duration::from_secs(15);
/// The part of an answer's body that is read, in bytes.
const MAX_BODY: usize = 16 * 1024;
/// The time for that. The status has decided by then; reading on only saves a new connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// The type of the messages that try a receiver out.
pub const TEST: &str = "webhook.test";

#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for webhooks cannot be built: {0}; install the system's CA certificates")]
pub struct ClientError(#[source] reqwest::Error);

/// A receiver, with its connections.
#[derive(Debug)]
pub struct Sender {
    pub webhook: Webhook,
    client: Client,
}

/// An answer that accepts a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub status: u16,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct Failed {
    pub failure: Failure,
    pub retry_after: Option<Duration>,
    /// The beginning of the answer's body.
    pub body: Vec<u8>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            retry_after: None,
            body: Vec::new(),
        }
    }
}

impl Sender {
    pub fn new(webhook: Webhook) -> Result<Self, ClientError> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // A redirect could lead anywhere, with the message.
            .redirect(Policy::none())
            // A proxy from the environment would connect to addresses that this service has not
            // checked.
            .no_proxy()
            .dns_resolver(Resolver(webhook.reach))
            .referer(false)
            .user_agent(concat!("Vestibule/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(ClientError)?;
        Ok(Self { webhook, client })
    }

    /// Sends a signed [`TEST`] message, which is not in the queue.
    pub async fn test(&self) -> Result<Accepted, Failed> {
        let now = clock::now();
        let timestamp = OffsetDateTime::from_unix_timestamp(now)
            .ok()
            .and_then(|time| time.format(&Rfc3339).ok());
        let payload = json!({ "type": TEST, "timestamp": timestamp, "data": {} }).to_string();
        self.send(&Uuid::now_v7().to_string(), &payload, now).await
    }

    /// Sends a message, whose id is the same in each attempt, signed at `now`. Only a status of 2xx
    /// accepts it.
    pub async fn send(&self, id: &str, payload: &str, now: i64) -> Result<Accepted, Failed> {
        let request = self
            .client
            .post(self.webhook.url.expose().clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", now)
            .header(
                "webhook-signature",
                signatures(&self.webhook.secrets, id, now, payload),
            )
            .body(payload.to_owned());
        let response = request
            .send()
            .await
            .map_err(|error| failure(&error.without_url()))?;
        let status = response.status();
        let retry_after = retry_after(&response);
        let body = beginning(response).await;
        let code = status.as_u16();
        let failure = match status {
            _ if status.is_success() => return Ok(Accepted { status: code, body }),
            _ if status.is_redirection() => Failure::Redirect(code),
            StatusCode::GONE => Failure::Gone,
            _ => Failure::Status(code),
        };
        Err(Failed {
            failure,
            retry_after,
            body,
        })
    }
}

/// Reads the beginning of a body, and the end as well if it is short and comes at once: then the
/// connection can be used again.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while body.len() <= MAX_BODY
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    // The status has decided, however slow the rest is.
    let _ = timeout(BODY_TIMEOUT, read).await;
    body.truncate(MAX_BODY);
    body
}

/// Returns the seconds of `Retry-After`, which counts for 429 and 503. A date is not read: clocks
/// differ.
fn retry_after(response: &Response) -> Option<Duration> {
    let waits = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ]
    .contains(&response.status());
    let seconds = response
        .headers()
        .get(RETRY_AFTER)
        .filter(|_| waits)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

fn failure(error: &reqwest::Error) -> Failure {
    let causes = iter::successors(Some(error as &(dyn Error + 'static)), |&error| {
        error.source()
    });
    if let Some(found) = causes
        .into_iter()
        .find_map(|cause| cause.downcast_ref::<Failure>())
    {
        return found.clone();
    }
    match error {
        _ if error.is_timeout() => Failure::Timeout,
        _ if error.is_connect() => Failure::Connect(root(error)),
        _ => Failure::Connection(root(error)),
    }
}

/// Returns the value of `webhook-signature` (Standard Webhooks, "Signature scheme"): one signature
/// for each secret, so that the receiver can change its own at any time while there are two.
fn signatures(secrets: &[Secret<Vec<u8>>], id: &str, timestamp: i64, payload: &str) -> String {
    let signed = format!("{id}.{timestamp}.{payload}");
    let signature = |secret: &Secret<Vec<u8>>| {
        let tag = sign(&Key::new(HMAC_SHA256, secret.expose()), signed.as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    };
    secrets.iter().map(signature).collect::<Vec<_>>().join(" ")
}
