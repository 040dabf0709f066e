//! The client's address: the socket's, or what a trusted proxy says. Not a guard itself; guards and the
//! request's id ask here.
//!
//! `X-Real-IP` and the like are never read, from anyone: they name one address and not who vouches
//! for it.

use std::net::IpAddr;

use rocket::request::Request;

use crate::config::{ForwardedHeader, Proxies};
use crate::web::forwarded;

/// The client's address in canonical form, if there is a socket at all.
#[must_use]
pub fn of(request: &Request<'_>) -> Option<IpAddr> {
    let peer = peer(request)?;
    let Some(proxies) = trusted_proxies(request) else { return Some(peer) };
    let name = match proxies.header {
        ForwardedHeader::XForwardedFor => "X-Forwarded-For",
        ForwardedHeader::Forwarded => "Forwarded",
    };
    let lines: Vec<&str> = request.headers().get(name).collect();
    Some(forwarded::client(peer, &lines, proxies))
}

/// The configured proxies, if the peer is one of them.
#[must_use]
pub fn trusted_proxies<'r>(request: &Request<'r>) -> Option<&'r Proxies> {
    let proxies: &Proxies = request.rocket().state()?;
    proxies.trust(peer(request)?).then_some(proxies)
}

/// The other end of the socket. A listener on `::` sees IPv4 clients as IPv4-mapped IPv6 (RFC 4291
/// §2.5.5.2).
fn peer(request: &Request<'_>) -> Option<IpAddr> {
    request.remote().map(|address| address.ip().to_canonical())
}
