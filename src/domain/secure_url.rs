//! The URLs to which a secret may be sent.

use std::net::IpAddr;

use url::{Host, Url};

/// Returns true for `https`, and for `http` to this machine. The URL must have no password and no fragment.
pub fn secure(url: &Url) -> bool {
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    bare && match url.scheme() {
        "https" => url.host().is_some(),
        "http" => match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
            Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
            None => false,
        },
        _ => false,
    }
}
