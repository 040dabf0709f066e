//! The client's IP address: the socket's, or the address that a trusted proxy reports. This is not
//! a guard; guards and the request's id use it.
//!
//! `X-Real-IP` and similar headers are never read: they name an address, but not the proxy that vouches for it.

use std::net::IpAddr;

use rocket::request::Request;

use crate::config::{ForwardedHeader, Proxies};
use crate::web::http::forwarded;

/// Returns the client's IP address in canonical form. Returns `None` without a socket, or if a
/// trusted proxy names no client that can be read. A proxy counts as the client only if the header
/// is missing: then the request is its own.
pub fn of(request: &Request<'_>) -> Option<IpAddr> {
    let peer = peer(request)?;
    let Some(proxies) = trusted_proxies(request) else {
        return Some(peer);
    };
    let name = match proxies.header {
        ForwardedHeader::XForwardedFor => "X-Forwarded-For",
        ForwardedHeader::Forwarded => "Forwarded",
    };
    let lines: Vec<&str> = request.headers().get(name).collect();
    if lines.is_empty() {
        Some(peer)
    } else {
        forwarded::client(&lines, proxies)
    }
}

/// Returns the configured proxies if the peer is one of them.
pub fn trusted_proxies<'r>(request: &Request<'r>) -> Option<&'r Proxies> {
    let proxies: &Proxies = request.rocket().state()?;
    proxies.trust(peer(request)?).then_some(proxies)
}

/// Returns the IP address of the socket's peer. A listener on `::` sees IPv4 clients as IPv4-mapped
/// IPv6 (RFC 4291 §2.5.5.2).
fn peer(request: &Request<'_>) -> Option<IpAddr> {
    request.remote().map(|address| address.ip().to_canonical())
}
