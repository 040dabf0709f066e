//! A real HTTP/1.1 identity provider on a loopback port: it records every request and misbehaves on
//! demand.

mod answer;
pub mod apple;
mod behaviour;
mod bodies;
mod connection;
mod dead_ends;
mod gate;
mod ledger;
mod recorded;
mod rules;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use rocket::futures::future::join_all;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

pub use behaviour::{Behaviour, End};
pub use bodies::odd_bodies;
pub use dead_ends::{Refusing, Silent};
pub use gate::Gate;
pub use ledger::Counts;
pub use recorded::Recorded;

use ledger::Ledger;
use rules::Rules;

use super::token::opaque;

/// With the default of 128, a burst of clients would lose connection attempts and retry after a
/// second.
const BACKLOG: u32 = 4096;

/// State that all connections of one provider share.
#[derive(Default)]
struct Shared {
    rules: Mutex<Rules>,
    ledger: Ledger,
}

/// An identity provider that listens until it is dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinSet<()>,
}

impl Provider {
    /// Starts a provider on a free loopback port; it knows no token yet.
    pub async fn start() -> Self {
        Self::start_on(0).await
    }

    #[expect(
        clippy::unused_async,
        reason = "spawning needs the runtime that awaiting implies"
    )]
    pub async fn start_on(port: u16) -> Self {
        let listener = bind(port).listen(BACKLOG).expect("a bound socket listens");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared::default());
        let accepting = JoinSet::from_iter([accept(listener, Arc::clone(&shared))]);
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Stops it, even during requests.
    #[allow(dead_code, reason = "only the whole tests end one")]
    pub async fn stop(mut self) {
        self.accepting.shutdown().await;
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the endpoint, `http://127.0.0.1:PORT/tokeninfo`.
    pub fn tokeninfo_url(&self) -> String {
        format!("{}/tokeninfo", self.url())
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.shared.rules.lock().unwrap()
    }

    /// Returns these claims for exactly this token. Other tokens stay invalid.
    pub fn accept(&self, token: &str, claims: Value) {
        self.rules().claims.insert(token.to_owned(), claims);
    }

    /// A new token, for which it returns these claims.
    pub fn token(&self, claims: Value) -> String {
        let token = opaque();
        self.accept(&token, claims);
        token
    }

    /// Takes a token back: from now on it is as invalid as an unknown one.
    pub fn revoke(&self, token: &str) {
        self.rules().claims.remove(token);
    }

    /// Behaves like this for every following request; [`Behaviour::Usual`] ends it.
    pub fn behave(&self, behaviour: Behaviour) {
        self.rules().always = behaviour;
    }

    /// Chooses the behaviour for each following request with this function.
    pub fn behave_by(&self, choose: impl Fn(&Recorded) -> Behaviour + Send + 'static) {
        self.rules().by_request = Some(Box::new(choose));
    }

    /// Keeps its behaviour, but drops connections that are used a second time.
    pub fn die_on_reuse(&self) {
        let mut rules = self.rules();
        rules.always = std::mem::take(&mut rules.always).dead_on_reuse();
    }

    /// Behaves like this whenever this token is asked about, whatever [`Self::behave`] says.
    pub fn behave_for(&self, token: &str, behaviour: Behaviour) {
        self.rules().by_token.insert(token.to_owned(), behaviour);
    }

    /// Queues a behaviour for one request; the queue goes before every other rule.
    pub fn behave_once(&self, behaviour: Behaviour) {
        self.rules().once.push_back(behaviour);
    }

    /// Makes the requests that follow wait, after they were recorded, until the gate lets them go.
    #[must_use = "a dropped gate is open"]
    pub fn hold(&self) -> Gate {
        let (gate, latch) = Gate::new();
        self.rules().gate = Some(latch);
        gate
    }

    /// Sends requests, and releases them once that many have arrived.
    pub async fn holding<T>(
        &self,
        count: usize,
        requests: impl Iterator<Item = impl Future<Output = T>>,
    ) -> Vec<T> {
        let gate = self.hold();
        let release = async {
            gate.arrived(count).await;
            gate.release();
        };
        tokio::join!(join_all(requests), release).0
    }

    /// Apple's code for that user and client, valid once.
    pub fn apple_code(&self, subject: &str, client_id: &str, redirect_uri: Option<&str>) -> String {
        self.rules().apple.code(subject, client_id, redirect_uri)
    }

    pub fn apple_tokens(&self) -> Vec<apple::Issued> {
        self.rules().apple.issued()
    }

    pub fn apple_errors(&self) -> Vec<String> {
        self.rules().apple.rejected()
    }

    /// Every complete request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.ledger.requests.lock().unwrap().clone()
    }

    pub fn calls(&self) -> usize {
        self.counts().calls
    }

    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// The largest number of requests that were unanswered at the same time.
    pub fn in_flight_max(&self) -> usize {
        self.counts().in_flight_max
    }

    pub fn counts(&self) -> Counts {
        *self.shared.ledger.counts.borrow()
    }

    /// Waits until the counters satisfy the condition, and fails the test when they never do.
    pub async fn until(&self, condition: impl FnMut(&Counts) -> bool) {
        ledger::wait(
            &self.shared.ledger.counts,
            "the provider's counters",
            condition,
        )
        .await;
    }
}

/// Binds a loopback port, a free one for 0, without listening on it yet.
fn bind(port: u16) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket can be made");
    // A given port may have been in use a moment ago.
    socket
        .set_reuseaddr(port > 0)
        .expect("a socket has the option");
    socket
        .bind((Ipv4Addr::LOCALHOST, port).into())
        .expect("the port is free");
    socket
}

/// Accepts connections until it is aborted, which also ends every connection it owns.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            shared.ledger.connected();
            if matches!(
                shared.rules.lock().unwrap().always,
                Behaviour::ResetOnConnect
            ) {
                connection::reset(&stream);
            } else {
                connection::serve(stream, &shared).await;
            }
        });
    }
}
