//! Requests a token from a running server over HTTP, and sends an event there as a provider would. The server has the key;
//! a second process with the same key could not know the issuer's port.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode};
use serde::Serialize;

use super::PATH;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why there is no token, in one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no server answers at {0}; start it with `cargo run` first")]
    NotRunning(String),
    #[error("another program is listening at {0}; stop it, or set ROCKET_PORT to the port of `cargo run`")]
    Stranger(String),
    #[error("the development provider refused the request: {0}")]
    Refused(String),
    #[error("the service answers {0}: {1}")]
    Unaccepted(u16, String),
    #[error("the HTTP client cannot be built: {0}; install the system's CA certificates")]
    Client(#[source] reqwest::Error),
}

/// Requests a token from the server on this port of this machine. `parameters` select the user, the audience, the
/// nonce and the age of the token.
pub async fn mint(port: u16, parameters: &(impl Serialize + ?Sized)) -> Result<String, Error> {
    issued(&client()?, port, "mint", parameters).await
}

/// Has the server on this port sign a security event, and sends it to the service there, under the name of this provider.
/// `parameters` select the kind of event and the account.
pub async fn send_event(port: u16, provider: &str, parameters: &impl Serialize) -> Result<(), Error> {
    let client = client()?;
    let token = issued(&client, port, "event", parameters).await?;
    let server = server(port);
    let request = client.post(format!("{server}/api/v1/providers/{provider}/events"));
    let request = request.header(CONTENT_TYPE, "application/secevent+jwt").body(token);
    let Ok(response) = request.send().await else { return Err(Error::NotRunning(server)) };
    let status = response.status();
    match (status, response.text().await) {
        (StatusCode::ACCEPTED, Ok(_)) => Ok(()),
        (_, Ok(answer)) => Err(Error::Unaccepted(status.as_u16(), answer)),
        (_, Err(_)) => Err(Error::Stranger(server)),
    }
}

fn server(port: u16) -> String {
    format!("http://{}:{port}", Ipv4Addr::LOCALHOST)
}

fn client() -> Result<Client, Error> {
    // A proxy would look for the server on its own machine.
    Client::builder().no_proxy().timeout(TIMEOUT).build().map_err(Error::Client)
}

async fn issued(
    client: &Client,
    port: u16,
    route: &str,
    parameters: &(impl Serialize + ?Sized),
) -> Result<String, Error> {
    let server = server(port);
    let request = client.get(format!("{server}{PATH}/{route}")).query(parameters);
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
