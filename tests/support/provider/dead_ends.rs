//! Addresses that lead nowhere.

use std::net::Ipv4Addr;

use tokio::net::{TcpListener, TcpSocket};

/// An address that refuses connections for as long as this value lives.
pub struct Refusing(TcpSocket);

impl Refusing {
    /// Reserves a loopback port: a bound socket that does not listen refuses, and no other is given
    /// its port.
    pub fn reserve() -> Self {
        Self(super::bind(0))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }
}

/// A listener that never speaks, so that a TLS handshake with it never ends. The system accepts its
/// connections.
pub struct Silent(TcpListener);

impl Silent {
    pub async fn start() -> Self {
        Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap())
    }

    pub fn https_url(&self) -> String {
        format!("https://{}", self.0.local_addr().unwrap())
    }
}
