//! The URLs to which a secret may be sent.

use std::net::IpAddr;

use url::{Host, Url};

/// Returns true for `https`, and for `http` to this machine. The URL must have no password and no fragment.
#[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_by_https_or_stays_on_this_machine() {
        let secure = |text: &str| secure(&Url::parse(text).unwrap());
        for url in
            ["https://id.example.com/x?y=z", "http://localhost:8080/", "http://127.0.0.2/", "http://[::1]/"]
        {
            assert!(secure(url), "{url}");
        }
        for url in [
            "http://id.example.com/",
            "http://localhost.example.com/",
            "http://10.0.0.1/",
            "http://[2001:db8::1]/",
            "https://user@id.example.com/",
            "https://:password@id.example.com/",
            "https://id.example.com/#fragment",
            "ftp://localhost/",
            "data:,x",
        ] {
            assert!(!secure(url), "{url}");
        }
    }
}
