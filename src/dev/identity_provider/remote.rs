//! Requests a token from a running server over HTTP. The server has the key; a second process with the same key
//! could not know the issuer's port.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::{Client, StatusCode};

use super::PATH;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why there is no token, in one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server answers.
    #[error("no server answers at {0}; start it with `cargo run` first")]
    NotRunning(String),
    /// Another server answers.
    #[error("another program is listening at {0}; stop it, or set ROCKET_PORT to the port of `cargo run`")]
    Stranger(String),
    /// The provider refused the request, for this reason.
    #[error("the development provider refused the request: {0}")]
    Refused(String),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}; install the system's CA certificates")]
    Client(#[source] reqwest::Error),
}

/// Requests a token from the server on this port of this machine. `parameters` select the user, the audience, the
/// nonce and the age of the token.
///
/// # Errors
/// See [`enum@Error`].
pub async fn mint(port: u16, parameters: &[(&str, &str)]) -> Result<String, Error> {
    let server = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
    // A proxy would look for the server on its own machine.
    let client = Client::builder().no_proxy().timeout(TIMEOUT).build().map_err(Error::Client)?;
    let request = client.get(format!("{server}{PATH}/mint")).query(parameters);
    let Ok(response) = request.send().await else { return Err(Error::NotRunning(server)) };
    let status = response.status();
    let Ok(text) = response.text().await else { return Err(Error::Stranger(server)) };
    let mut lines = text.lines();
    match (status, lines.next(), lines.next()) {
        (StatusCode::OK, Some(token), None) if token.split('.').count() == 3 => Ok(token.to_owned()),
        (StatusCode::BAD_REQUEST, Some(why), None) if !why.starts_with('{') => {
            Err(Error::Refused(why.to_owned()))
        }
        _ => Err(Error::Stranger(server)),
    }
}
