//! A real HTTP/1.1 identity provider on a loopback port: it records every request and misbehaves on demand.

mod answer;
#[allow(dead_code, reason = "only some test binaries need Apple")]
pub mod apple;
mod behaviour;
mod bodies;
mod connection;
mod craft;
mod dead_ends;
mod form;
mod gate;
mod gzip;
mod ledger;
mod play;
mod recorded;
mod request;
mod rules;
mod script;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{AbortHandle, JoinSet};

pub use behaviour::Behaviour;
pub use bodies::{nested, odd_bodies};
pub use dead_ends::{Refusing, Silent};
pub use gate::Gate;
pub use ledger::Counts;
pub use recorded::Recorded;
pub use script::Step;

use connection::Connection;
use ledger::Ledger;
use rules::Rules;

/// With the default of 128, a burst of clients would lose connection attempts and retry after a second.
const BACKLOG: u32 = 4096;

/// How long to let be when the system gives no connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What every connection of one provider shares.
#[derive(Debug, Default)]
struct Shared {
    rules: Rules,
    ledger: Arc<Ledger>,
}

/// An identity provider that listens until it is dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Provider {
    /// Starts a provider on a free loopback port; it knows no token yet.
    #[expect(clippy::unused_async, reason = "spawning needs the runtime that awaiting implies")]
    pub async fn start() -> Self {
        let (listener, address) = listen();
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Self { address, shared, task }
    }

    /// The address clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the endpoint, `http://127.0.0.1:PORT/tokeninfo`.
    #[must_use]
    pub fn tokeninfo_url(&self) -> String {
        format!("{}/tokeninfo", self.url())
    }

    /// Answers these claims for exactly this token; any other token stays invalid.
    #[expect(clippy::needless_pass_by_value, reason = "tests pass `json!(…)`")]
    pub fn accept(&self, token: &str, claims: Value) {
        self.shared.rules.accept(token, &claims);
    }

    /// Takes a token back: from now on it is as invalid as an unknown one.
    pub fn revoke(&self, token: &str) {
        self.shared.rules.revoke(token);
    }

    /// Behaves like this for every following request; [`Behaviour::Usual`] ends it.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.rules.always(behaviour);
    }

    /// Goes on as it does, but connections are dead when they are used again.
    pub fn die_on_reuse(&self) {
        self.behave(self.shared.rules.lasting().dead_on_reuse());
    }

    /// Behaves like this whenever this token is asked about, whatever [`Self::behave`] says.
    pub fn behave_for(&self, token: &str, behaviour: Behaviour) {
        self.shared.rules.for_token(token, behaviour);
    }

    /// Queues a behaviour for one request; the queue goes before every other rule.
    pub fn behave_once(&self, behaviour: Behaviour) {
        self.shared.rules.once(behaviour);
    }

    /// Makes the requests that follow wait, after they were recorded, until the gate lets them go.
    #[must_use = "a dropped gate is open"]
    pub fn hold(&self) -> Gate {
        let gate = Gate::default();
        self.shared.rules.hold(gate.latch());
        gate
    }

    /// A code of Apple's for that user and client, valid once.
    #[must_use]
    #[allow(dead_code, reason = "only some test binaries need Apple")]
    pub fn apple_code(&self, subject: &str, client_id: &str, redirect_uri: Option<&str>) -> String {
        self.shared.rules.apple.code(subject, client_id, redirect_uri)
    }

    /// The tokens that Apple has issued for codes.
    #[must_use]
    #[allow(dead_code, reason = "only some test binaries need Apple")]
    pub fn apple_tokens(&self) -> Vec<apple::Issued> {
        self.shared.rules.apple.issued()
    }

    /// The errors that Apple has answered.
    #[must_use]
    #[allow(dead_code, reason = "only some test binaries need Apple")]
    pub fn apple_errors(&self) -> Vec<String> {
        self.shared.rules.apple.rejected()
    }

    /// Every complete request so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.ledger.requests()
    }

    /// How many complete requests arrived.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.counts().calls
    }

    /// How many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// The largest number of requests that were unanswered at the same time.
    #[must_use]
    pub fn in_flight_max(&self) -> usize {
        self.counts().in_flight_max
    }

    /// All counters at one moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.ledger.counts()
    }

    /// Waits until the counters satisfy the condition, and fails the test when they never do.
    pub async fn until(&self, condition: impl FnMut(&Counts) -> bool) -> Counts {
        self.shared.ledger.until(condition).await
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Binds a free loopback port without listening on it yet.
fn bind() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket can be made");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(any).expect("a loopback port is free");
    let address = socket.local_addr().expect("a bound socket has an address");
    (socket, address)
}

/// Listens on a free loopback port.
fn listen() -> (TcpListener, SocketAddr) {
    let (socket, address) = bind();
    let listener = socket.listen(BACKLOG).expect("a bound socket listens");
    (listener, address)
}

/// Accepts connections until it is aborted, which also ends every connection it owns.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of file descriptors, most likely: trying at once would only spin.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let connection = Connection::new(stream, Arc::clone(&shared));
                // Decided here and not in the task, so that it follows the order of arrival.
                if shared.rules.resets_new_connection() {
                    connection.reset();
                } else {
                    connections.spawn(connection.serve());
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
