//! The URLs to which a secret may be sent.

use std::net::IpAddr;

use url::{Host, Url};

/// Returns true for `https`, and for `http` to this machine. The URL must have no user, no password
/// and no fragment.
pub fn secure(url: &Url) -> bool {
    url.scheme() == "https" && url.host().is_some() && is_bare(url) || is_on_this_machine(url)
}

/// Returns true for a URL that can only be on this machine. A user name may look like a host.
pub fn is_on_this_machine(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    };
    loopback && is_bare(url) && matches!(url.scheme(), "http" | "https")
}

fn is_bare(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none() && url.fragment().is_none()
}
