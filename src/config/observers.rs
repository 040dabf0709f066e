//! `[default.metrics]`: the networks that may read the metrics.

use std::net::IpAddr;

use figment::Figment;
use ipnet::IpNet;
use serde::Deserialize;

use super::{Error, text};

/// This machine and private networks (RFC 1918, RFC 4193).
const NEAR: [&str; 6] =
    ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default = "near", deserialize_with = "text::list")]
    networks: Vec<String>,
}

impl Default for Raw {
    fn default() -> Self {
        Self { networks: near() }
    }
}

fn near() -> Vec<String> {
    NEAR.map(str::to_owned).into()
}

/// Networks whose addresses may read the metrics.
#[derive(Debug, Clone)]
pub struct Observers(Vec<IpNet>);

impl Observers {
    /// Returns true if one of the networks contains this IP address.
    #[must_use]
    pub fn include(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

pub(super) fn read(figment: &Figment, raw: &Raw) -> Result<Observers, Error> {
    let networks = raw.networks.iter().map(|text| network(text)).collect::<Option<_>>();
    networks.map(Observers).ok_or_else(|| {
        let remedy = "list IP addresses or networks, such as 10.1.0.0/16; an empty list denies all access";
        Error::at(
            figment,
            "metrics.networks",
            "contains an item that is neither an IP address nor a network",
            remedy,
        )
    })
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
}
