//! `[default.metrics]`: the networks that may read the metrics.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

use super::text;

/// This machine and private networks (RFC 1918, RFC 4193).
const NEAR: [&str; 6] = [
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
];
const NEITHER: &str = "contains an item that is neither an IP address nor a network";

/// Networks whose addresses may read the metrics.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Observers {
    #[serde(deserialize_with = "networks")]
    networks: Vec<IpNet>,
}

impl Observers {
    pub fn include(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }
}

impl Default for Observers {
    fn default() -> Self {
        Self {
            networks: NEAR.iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let remedy =
        "list IP addresses or networks, such as 10.1.0.0/16; an empty list denies all access";
    text::list_of(deserializer, network, remedy)
}

/// Reads a network, or a single address.
pub(super) fn network(text: &str) -> Result<IpNet, &'static str> {
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| NEITHER)
}
