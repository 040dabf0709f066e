//! The shared outbound HTTP client: pooled connections, no redirects, no proxy, short timeouts.

use std::time::Duration;

use reqwest::redirect::Policy;

/// The timeout of a connection attempt, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for identity providers cannot be built: {0}; install the system's CA certificates")]
pub struct ClientError(#[source] reqwest::Error);

pub(super) fn build() -> Result<reqwest::Client, ClientError> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would send the token to another host.
        .redirect(Policy::none())
        // A proxy from the environment would see a token for an `http` endpoint on this machine in plain
        // text.
        .no_proxy()
        .referer(false)
        .user_agent(concat!("Vestibule/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(ClientError)
}
