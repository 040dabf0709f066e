//! The networks that a request on an outsider's behalf may reach, and the networks that requests
//! come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Returns the network of a client's address: enough to find the source of a flood, and no single
/// person.
pub fn around(address: IpAddr) -> Option<IpNet> {
    let prefix = if address.is_ipv4() { 24 } else { 48 };
    IpNet::new(address, prefix)
        .ok()
        .map(|network| network.trunc())
}

/// The IP addresses that a webhook may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Internet,
    /// Also private networks and this machine.
    PrivateNetworks,
    /// This machine only, since the connection is not encrypted.
    ThisMachine,
}

impl Reach {
    /// Returns true if the address may be reached. Addresses at which clouds give out credentials
    /// never may: link-local addresses, and `CREDENTIALS`.
    pub fn permits(self, ip: IpAddr) -> bool {
        let ip = plain(ip);
        if CREDENTIALS.contains(&ip) {
            return false;
        }
        match self {
            Self::Internet => is_public(ip),
            Self::PrivateNetworks => is_public(ip) || is_private(ip) || ip.is_loopback(),
            Self::ThisMachine => ip.is_loopback(),
        }
    }
}

/// The addresses in private networks at which clouds give out credentials: AWS's `fd00:ec2::254`,
/// and Alibaba's `100.100.100.200`.
const CREDENTIALS: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
];

/// Returns the IPv4 address inside an IPv6 address that leads to it: `::ffff:a.b.c.d` (RFC 4291
/// §2.5.5.2) and NAT64's `64:ff9b::a.b.c.d` (RFC 6052 §2.1).
fn plain(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into()
        }
        _ => v6.to_canonical(),
    }
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// IANA's special-purpose addresses (RFC 6890 and its registry) are not public.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    !matches!(
        ip.octets(),
        [0 | 10 | 127 | 224.., ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    )
}

/// Only `2000::/3` is given out for the internet. In it, Teredo and 6to4 contain IPv4 addresses.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// RFC 1918, RFC 6598 (shared by providers), RFC 4193.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || matches!(ip.octets(), [100, 64..=127, ..]),
        IpAddr::V6(ip) => ip.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "\
        1.1.1.1 100.63.255.255 172.32.0.1 192.0.1.1 223.255.255.255 2606:4700::1111 \
        ::ffff:1.1.1.1 64:ff9b::101:101";
    const PRIVATE: &str = "\
        10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.127.255.255 fd00::1 \
        fc00::1 ::ffff:10.0.0.1 64:ff9b::c0a8:101 ::ffff:192.168.0.1";
    const LOOPBACK: &str = "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1";
    const NEVER: &str = "\
        fd00:ec2::254 100.100.100.200 0.0.0.0 0.1.2.3 169.254.169.254 192.0.0.8 192.0.2.1 \
        192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 \
        255.255.255.255 :: ::7f00:1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 64:ff9b::a9fe:a9fe \
        64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:a00:1::1 3fff::1 5f00::1 \
        fe80::1 fec0::1 ff02::1 4000::1";

    #[test]
    fn private_and_loopback_addresses_need_the_operators_permission() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap_or_else(|_| panic!("{text}"));
        for (addresses, [internet, private, here]) in [
            (PUBLIC, [true, true, false]),
            (PRIVATE, [false, true, false]),
            (LOOPBACK, [false, true, true]),
            (NEVER, [false, false, false]),
        ] {
            for text in addresses.split(' ') {
                assert_eq!(Reach::Internet.permits(ip(text)), internet, "{text}");
                assert_eq!(Reach::PrivateNetworks.permits(ip(text)), private, "{text}");
                assert_eq!(Reach::ThisMachine.permits(ip(text)), here, "{text}");
            }
        }
    }
}
