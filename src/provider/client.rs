//! The shared outbound HTTP client: pooled connections, no redirects, the environment's proxy,
//! short timeouts.

use std::time::Duration;

use reqwest::redirect::Policy;

use super::proxy::Proxy;

/// The timeout of a connection attempt, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "the HTTP client for identity providers cannot be built: {0}; install the system's CA certificates"
    )]
    Build(#[source] reqwest::Error),
    /// The environment names something else than an HTTP proxy.
    #[error(
        "`{0}` is not the URL of an HTTP proxy; set it to one such as http://proxy.example.com:3128, with a percent-encoded \
         password, or remove it"
    )]
    Proxy(&'static str),
}

pub(super) fn build() -> Result<reqwest::Client, ClientError> {
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would send the token to another host.
        .redirect(Policy::none())
        .referer(false)
        .user_agent(concat!("Vestibule/", env!("CARGO_PKG_VERSION")));
    let client = match Proxy::of_environment()? {
        Some(proxy) => proxy.apply(client)?,
        None => client.no_proxy(),
    };
    client.build().map_err(ClientError::Build)
}
