//! `trusted_proxies` and `forwarded_header`: the proxies that may name the client's IP address, and the
//! header.

use std::net::IpAddr;

use figment::Figment;
use figment::value::Value;
use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Deserializer};

use super::error::Error;
use super::observers::network;
use super::text;

/// The header in which the proxies name the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: IP addresses with commas, each hop appended by the proxy that saw it.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The proxies in front of the service; none by default, since any client can write a header.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    trusted: Vec<IpNet>,
    /// The header in which they name the client. They must overwrite it or append to it. The other
    /// header is never read, because a proxy that does not know it passes on the client's own
    /// value.
    pub header: ForwardedHeader,
}

impl Proxies {
    /// Returns true if no proxy is trusted.
    pub const fn are_none(&self) -> bool {
        self.trusted.is_empty()
    }

    /// Returns true if this canonical IP address belongs to a trusted proxy.
    pub fn trust(&self, address: IpAddr) -> bool {
        self.trusted
            .iter()
            .any(|network| network.contains(&address))
    }
}

pub(super) fn read(
    figment: &Figment,
    trusted: Vec<IpNet>,
    header: ForwardedHeader,
) -> Result<Proxies, Error> {
    let rocket = figment
        .find_value("ip_header")
        .unwrap_or_else(|_| Value::from(false));
    if rocket.to_bool() != Some(false) {
        let remedy = "remove it; `trusted_proxies` lists the proxies whose headers are trusted";
        return Err(Error::at(
            figment,
            "ip_header",
            "would trust a header from any client",
            remedy,
        ));
    }
    Ok(Proxies { trusted, header })
}

pub(super) fn trusted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    text::list_of(
        deserializer,
        trusted_network,
        "list the proxies' IP addresses or networks, such as 10.1.0.0/16",
    )
}

fn trusted_network(text: &str) -> Result<IpNet, &'static str> {
    let network = canonical(network(text)?);
    if network.prefix_len() == 0 {
        return Err("trusts every client, which could then forge its IP address");
    }
    if network.trunc() != network {
        return Err("contains a network with host bits set");
    }
    Ok(network)
}

/// Converts IPv4 networks in IPv6 notation to IPv4, the form in which peers' IP addresses are
/// compared.
fn canonical(network: IpNet) -> IpNet {
    let mapped = |network: ipnet::Ipv6Net| {
        let prefix = network.prefix_len().checked_sub(96)?;
        Ipv4Net::new(network.addr().to_ipv4_mapped()?, prefix).ok()
    };
    match network {
        IpNet::V6(v6) => mapped(v6).map_or(network, IpNet::V4),
        IpNet::V4(_) => network,
    }
}
