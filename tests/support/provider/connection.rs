//! Serves one connection: request after request, until either side has had enough. hyper reads the
//! requests. It writes no answer, for no HTTP library sends wrong lengths, half a body or headers
//! without an end.

use std::future::{pending, poll_fn};
use std::io;
use std::sync::OnceLock;

use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::Shared;
use super::behaviour::{End, Plan};
use super::ledger::{Counts, OnDrop};
use super::recorded::Recorded;

/// Answers requests until one of them, or the client, ends the connection.
pub(super) async fn serve(mut stream: TcpStream, shared: &Shared) {
    // Without it a trickled byte would wait for its predecessor's acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut reused = false;
    while let Some((returned, request)) = next_request(stream).await {
        stream = returned;
        // Chosen before it is counted: a test that waits for the call and then changes the rules
        // changes them for the next call.
        let (behaviour, usual, gate) = shared.rules.lock().unwrap().choose(&request);
        let call = shared.ledger.arrived(request);
        let plan = behaviour.plan(&usual, reused);
        let (mut incoming, mut outgoing) = stream.split();
        let played = async {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            play(plan, call, &mut outgoing).await
        };
        let end = tokio::select! {
            // First, so that an answer that is ready goes out even to a client that half-closed.
            biased;
            end = played => end,
            () = departure(&mut incoming) => Ok(End::Close),
        };
        match end {
            Ok(End::Stay) => reused = true,
            Ok(End::Reset) => return reset(&stream),
            _ => return,
        }
    }
}

/// Lets the connection end with a RST when it is dropped.
pub(super) fn reset(stream: &TcpStream) {
    // Should it fail, the client sees an ordinary close, and the test that asked for a RST fails.
    let _ = stream.set_zero_linger();
}

/// The next request and the connection, on which nothing was written. No client of the tests sends
/// a request before the previous one is answered, so hyper has read no further.
async fn next_request(stream: TcpStream) -> Option<(TcpStream, Recorded)> {
    let kept = OnceLock::new();
    let keep = service_fn(|request| {
        Box::pin(async {
            if let Ok(request) = Recorded::read(request).await {
                kept.get_or_init(|| request);
            }
            // An error makes hyper stop and write nothing.
            Err::<Response<String>, _>("it is answered without hyper")
        })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), keep);
    let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let stream = connection.into_parts().io.into_inner();
    Some((stream, kept.into_inner()?))
}

/// Does what is planned; an error means that the client left.
async fn play(
    mut plan: Plan,
    call: OnDrop<'_, Counts>,
    outgoing: &mut WriteHalf<'_>,
) -> io::Result<End> {
    // Not a sleep of no time, which takes a millisecond.
    if let Some(delay) = plan.delay {
        sleep(delay).await;
    }
    let last = match plan.end {
        End::Hang | End::Repeat(_) => None,
        _ => plan.pieces.pop(),
    };
    for piece in &plan.pieces {
        outgoing.write_all(piece).await?;
        sleep(plan.interval).await;
    }
    match &plan.end {
        End::Hang => pending().await,
        End::Repeat(block) => loop {
            outgoing.write_all(block).await?;
            call.0.send_modify(|counts| counts.repeated += block.len());
            // A client as fast as this loop must not keep the worker from other tasks.
            yield_now().await;
        },
        _ => {}
    }
    // Just before the last byte leaves: the client's next request must not overlap.
    call.answered();
    outgoing.write_all(&last.unwrap_or_default()).await?;
    Ok(plan.end)
}

/// Waits until the client leaves.
async fn departure(incoming: &mut ReadHalf<'_>) {
    if let Ok(1..) = incoming.peek(&mut [0]).await {
        // It sends more instead, which is no request; writing will tell when it leaves.
        pending::<()>().await;
    }
}
