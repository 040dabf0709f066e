//! Name resolution that finds only the IP addresses that a webhook may reach. The connection goes
//! to an address that was checked, since nothing looks the name up again.

use std::error::Error;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use super::failure::Failure;
use crate::domain::network::Reach;

/// Resolves names with the system's resolver.
pub(super) struct Resolver(pub Reach);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            // The port does not matter: the client uses the URL's port.
            let found = lookup_host((name.as_str(), 0))
                .await
                .map_err(|_| Failure::NoAddress)?;
            let found = permitted(reach, found)?;
            Ok::<Addrs, Box<dyn Error + Send + Sync>>(Box::new(found.into_iter()))
        })
    }
}

/// Returns the addresses that may be reached. An answer may mix them with others, which are not
/// tried.
fn permitted(
    reach: Reach,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, Failure> {
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(Failure::NoAddress);
    }
    let permitted: Vec<_> = found
        .into_iter()
        .filter(|address| reach.permits(address.ip()))
        .collect();
    if permitted.is_empty() {
        Err(Failure::PrivateNetwork)
    } else {
        Ok(permitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_addresses_only_those_of_the_internet_are_tried() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts
                .iter()
                .map(|text| (text.parse::<std::net::IpAddr>().unwrap(), 0).into())
                .collect()
        };
        let found = |texts: &[&str]| permitted(Reach::Internet, addresses(texts).into_iter());
        let mixed = [
            "10.0.0.1",
            "1.1.1.1",
            "::1",
            "2606:4700::1111",
            "169.254.169.254",
        ];
        assert_eq!(
            found(&mixed),
            Ok(addresses(&["1.1.1.1", "2606:4700::1111"]))
        );
        assert_eq!(
            found(&["127.0.0.1", "::ffff:192.168.0.1"]),
            Err(Failure::PrivateNetwork)
        );
        assert_eq!(found(&[]), Err(Failure::NoAddress));
    }
}
