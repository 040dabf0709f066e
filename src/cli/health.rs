//! `vestibule health`

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use super::Result;
use crate::config;

pub(super) const HELP: &str = "Example, for containers that hold no shell and no curl:
  HEALTHCHECK CMD [\"/vestibule\", \"health\"]

Exit codes: 0 it is ready, 1 it is not, or nobody answers.";

/// Longest wait for each of connection and answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest answer that is read, in bytes.
const ENOUGH: u64 = 8 * 1024;

pub(super) fn run() -> Result {
    let figment = config::figment();
    if figment.find_value("tls").is_ok_and(|tls| tls.as_dict().is_some()) {
        return Err(
            "with `tls`, the service speaks no plain HTTP here; ask its public address for /readyz".into()
        );
    }
    let unreadable = |_| "configuration: `address` or `port` cannot be read; `vestibule check` says why";
    let address = figment.extract_inner("address").map_err(unreadable)?;
    let port = figment.extract_inner("port").map_err(unreadable)?;
    let (ready, said) = ask(SocketAddr::new(near(address), port))
        .map_err(|error| format!("no answer on port {port}: {error}; is the service running here?"))?;
    println!("{said}");
    if ready { Ok(()) } else { Err("it is not ready".into()) }
}

/// Where a service that listens there is reached from this machine.
fn near(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Whether it is ready, and what it says.
fn ask(service: SocketAddr) -> std::io::Result<(bool, String)> {
    let mut stream = TcpStream::connect_timeout(&service, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(ENOUGH).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let said = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body.trim());
    Ok((answer.starts_with("HTTP/1.1 200 "), said.to_owned()))
}
