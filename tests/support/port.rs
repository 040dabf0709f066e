//! Ports for servers.

use std::iter;
use std::net::TcpListener;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

use uuid::Uuid;

const FIRST: u16 = 10_000;
/// Number of ports. The range ends below the system's ephemeral ports: an outgoing connection of a
/// test could take a port before its server does.
const COUNT: u16 = 22_000;

/// A port that nothing listens on, and a new one each time.
pub fn free_port() -> u16 {
    // Each process starts at a random port.
    static NEXT: LazyLock<AtomicU16> =
        LazyLock::new(|| AtomicU16::new(Uuid::new_v4().as_fields().1));
    let next = || FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
    iter::repeat_with(next)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
