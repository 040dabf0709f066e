//! `vestibule health`

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};

use super::Result;
use crate::{causes, config};

pub(super) const HELP: &str = "Example for containers without a shell and curl:
  HEALTHCHECK CMD [\"/vestibule\", \"health\"]

Exit codes: 0 the service is ready, 1 it is not ready or does not respond.";

const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run() -> Result {
    let figment = config::figment();
    let unreadable = |_| "configuration: `address` or `port` cannot be read; run `vestibule check` for the reason";
    let address = figment.extract_inner("address").map_err(unreadable)?;
    let port = figment.extract_inner("port").map_err(unreadable)?;
    let tls = figment
        .find_value("tls")
        .is_ok_and(|tls| tls.as_dict().is_some());
    let scheme = if tls { "https" } else { "http" };
    let url = format!("{scheme}://{}/readyz", SocketAddr::new(near(address), port));
    super::block_on(1, async move {
        let (status, said) = ask(&url).await.map_err(|error| {
            let cause = causes::root(&error);
            format!("no response on port {port}: {cause}; check that the service is running on this machine")
        })?;
        say!("{said}");
        if status == StatusCode::OK {
            Ok(())
        } else {
            Err("the service is not ready".into())
        }
    })
}

/// Returns the IP address at which a service listening on `address` is reached from this machine.
fn near(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Requests `/readyz`. Returns the status and the body.
async fn ask(url: &str) -> reqwest::Result<(StatusCode, String)> {
    let client = Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .redirect(Policy::none())
        // The certificate is for the public name, and the connection does not leave this machine.
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let answer = client.get(url).send().await?;
    Ok((answer.status(), answer.text().await?))
}
