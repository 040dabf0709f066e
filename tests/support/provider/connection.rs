//! Serves one connection: request after request, until either side has had enough.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

use super::Shared;
use super::answer::Answer;
use super::ledger::Open;
use super::play::{Ending, Stage};
use super::request::{Incoming, LIMIT, NoRequest, Request};

/// An accepted connection.
#[derive(Debug)]
pub(super) struct Connection {
    // Before `open`, for fields are dropped in order: a connection counted as gone is gone.
    stream: TcpStream,
    open: Open,
    ahead: Vec<u8>,
    shared: Arc<Shared>,
    used: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, shared: Arc<Shared>) -> Self {
        // Without it a trickled byte would wait for its predecessor's acknowledgement; a socket
        // that refuses the option is already dead, and reading will tell.
        let _ = stream.set_nodelay(true);
        Self { open: shared.ledger.connected(), stream, ahead: Vec::new(), shared, used: false }
    }

    /// Tears the connection down with a RST.
    pub(super) fn reset(self) {
        // Should it fail, the client sees an ordinary close, and the test that asked for a RST fails.
        let _ = self.stream.set_zero_linger();
    }

    /// Answers requests until one of them, or the client, ends the connection.
    pub(super) async fn serve(mut self) {
        loop {
            let incoming =
                Incoming { stream: &mut self.stream, ahead: &mut self.ahead, connection: self.open.number };
            let ending = match incoming.request().await {
                Ok(request) => self.answer(request).await,
                Err(NoRequest::Refused(code)) => {
                    self.shared.ledger.malformed();
                    return self.refuse(code).await;
                }
                Err(NoRequest::Gone) => return,
            };
            match ending {
                Ok(Ending::Open) => self.used = true,
                Ok(Ending::Reset) => return self.reset(),
                // A client that left needs no goodbye either: dropping the socket closes it.
                Ok(Ending::Close) | Err(_) => return,
            }
        }
    }

    /// Does with the request what the rules say, unless the client leaves before.
    async fn answer(&mut self, request: Request) -> io::Result<Ending> {
        let Request { recorded, keep_alive } = request;
        // Chosen before it is counted: a test that waits for the call and then changes the rules
        // changes them for the next call.
        let chosen = self.shared.rules.choose(&recorded);
        let call = self.shared.ledger.arrived(recorded);
        let steps = chosen.behaviour.steps(&chosen.usual, self.used);
        let (mut incoming, mut outgoing) = self.stream.split();
        let played = async {
            let stage = Stage::new(&mut outgoing, call);
            if let Some(gate) = chosen.gate {
                gate.pass().await;
            }
            stage.play(&steps).await
        };
        let ending = tokio::select! {
            // First, so that an answer that is ready goes out even to a client that half-closed.
            biased;
            ending = played => ending?,
            () = departure(&mut incoming, &mut self.ahead) => Ending::Close,
        };
        Ok(match ending {
            Ending::Open if !keep_alive => Ending::Close,
            ending => ending,
        })
    }

    /// Says why a request was not understood, and closes.
    async fn refuse(mut self, code: u16) {
        let answer = Answer::new(code, "text/plain", Vec::new()).with("connection", "close");
        if self.stream.write_all(&answer.bytes()).await.is_err() {
            return;
        }
        // Closing with bytes unread would be a RST, which could overtake the answer.
        let _ = self.stream.shutdown().await;
        let mut sink = vec![0; 16 * 1024];
        while matches!(self.stream.read(&mut sink).await, Ok(1..)) {}
    }
}

/// Waits until the client leaves, and keeps what it sends in the meantime for later.
async fn departure(incoming: &mut ReadHalf<'_>, ahead: &mut Vec<u8>) {
    while ahead.len() <= LIMIT {
        ahead.reserve(4096);
        match incoming.read_buf(ahead).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    // Too much for reading on; writing will tell.
    std::future::pending::<()>().await;
}
