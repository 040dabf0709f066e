//! Addresses that lead nowhere.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{AbortHandle, JoinSet};

use super::ledger::{Counts, Ledger};
use super::{ACCEPT_PAUSE, bind, listen};

/// An address that refuses connections for as long as this value lives.
#[derive(Debug)]
pub struct Refusing {
    address: SocketAddr,
    // Bound and not listening: that refuses, and no one else is given the port meanwhile.
    _socket: TcpSocket,
}

impl Refusing {
    /// Reserves a loopback port on which nothing listens.
    #[must_use]
    pub fn reserve() -> Self {
        let (socket, address) = bind();
        Self { address, _socket: socket }
    }

    /// The base address, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address that refuses.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A listener that accepts, reads and never speaks: a TLS handshake with it never ends.
#[derive(Debug)]
pub struct Silent {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    task: AbortHandle,
}

impl Silent {
    /// Starts listening on a free loopback port.
    #[expect(clippy::unused_async, reason = "spawning needs the runtime that awaiting implies")]
    pub async fn start() -> Self {
        let (listener, address) = listen();
        let ledger = Arc::new(Ledger::default());
        let task = tokio::spawn(swallow(listener, Arc::clone(&ledger))).abort_handle();
        Self { address, ledger, task }
    }

    /// The address as one for TLS, `https://127.0.0.1:PORT`.
    #[must_use]
    pub fn https_url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The address as one for plain HTTP, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn http_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counters, of which only those of connections move.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// Waits until the counters satisfy the condition, and fails the test when they never do.
    pub async fn until(&self, condition: impl FnMut(&Counts) -> bool) -> Counts {
        self.ledger.until(condition).await
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections and reads them to their end.
async fn swallow(listener: TcpListener, ledger: Arc<Ledger>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((mut stream, _)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let open = ledger.connected();
                connections.spawn(async move {
                    let mut sink = [0; 4096];
                    while matches!(stream.read(&mut sink).await, Ok(1..)) {}
                    drop((stream, open));
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
