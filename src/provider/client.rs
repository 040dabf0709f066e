//! The one outbound HTTP client: pooled connections, no redirects, no proxy, tight deadlines.

use std::time::Duration;

use reqwest::redirect::Policy;

/// Longest wait for a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The client could not be built.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for identity providers cannot be built: {0}; install the system's CA certificates")]
pub struct ClientError(#[source] reqwest::Error);

pub(super) fn build() -> Result<reqwest::Client, ClientError> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would carry the token to whoever is named in it.
        .redirect(Policy::none())
        // A proxy of the environment would get the token of an endpoint on this machine in plain text.
        .no_proxy()
        .referer(false)
        .user_agent(concat!("vestibule/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(ClientError)
}
