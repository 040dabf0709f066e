//! Asking a running server for a token, over HTTP like anyone else: the key is in its hands, and a
//! second process with the same key could not know on which port the issuer is.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::{Client, StatusCode};

use super::PATH;

const TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no token. Each is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody is there.
    #[error("no server answers at {0}; start it with `cargo run` first")]
    NotRunning(String),
    /// Somebody is there, but not this provider.
    #[error(
        "what answers at {0} is not a development build of this program; stop it, or set ROCKET_PORT to the port that `cargo run` uses"
    )]
    Stranger(String),
    /// The provider does not like the request; its own words.
    #[error("the development provider refuses: {0}")]
    Refused(String),
    /// There is no HTTP client to ask with.
    #[error("the HTTP client cannot be built: {0}; install the system's CA certificates")]
    Client(#[source] reqwest::Error),
}

/// A token of the server on that port of this machine, for the person and with the audience,
/// nonce and age that `parameters` tell.
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
