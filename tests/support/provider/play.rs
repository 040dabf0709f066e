//! Carries out the steps of a behaviour on a connection.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::ledger::InFlight;
use super::script::Step;

/// How the steps left the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Ready for the next request.
    Open,
    /// To be closed.
    Close,
    /// To be reset.
    Reset,
}

/// The sending side of a connection during one answer.
pub(super) struct Stage<'a, W> {
    out: &'a mut W,
    call: Option<InFlight>,
}

impl<'a, W: AsyncWrite + Unpin> Stage<'a, W> {
    pub(super) fn new(out: &'a mut W, call: InFlight) -> Self {
        Self { out, call: Some(call) }
    }

    /// Plays the steps to their end; an error means that the client left.
    pub(super) async fn play(mut self, steps: &[Step]) -> io::Result<Ending> {
        // A close or reset sends nothing, so the answer ends with the step before it.
        let silent = |step: &Step| matches!(step, Step::Close | Step::Reset);
        let last = steps.iter().rposition(|step| !silent(step));
        for (at, step) in steps.iter().enumerate() {
            let ends = last == Some(at);
            match step {
                Step::Write(bytes) => self.send(bytes, ends).await?,
                Step::Trickle { bytes, interval } => {
                    for (sent, byte) in bytes.iter().enumerate() {
                        if sent > 0 {
                            tokio::time::sleep(*interval).await;
                        }
                        let ends = ends && sent + 1 == bytes.len();
                        self.send(&[*byte], ends).await?;
                    }
                }
                Step::Fill { block, total } => self.fill(block, *total, ends).await?,
                Step::Forever(block) => loop {
                    self.send(block, false).await?;
                    // A client as fast as this loop must not keep the worker from other tasks.
                    tokio::task::yield_now().await;
                },
                Step::Pause(duration) => tokio::time::sleep(*duration).await,
                Step::Hang => std::future::pending().await,
                Step::Close => {
                    self.answered();
                    return Ok(Ending::Close);
                }
                Step::Reset => {
                    self.answered();
                    return Ok(Ending::Reset);
                }
            }
        }
        self.answered();
        Ok(Ending::Open)
    }

    async fn fill(&mut self, block: &[u8], total: u64, ends: bool) -> io::Result<()> {
        let mut left = total;
        while left > 0 && !block.is_empty() {
            let size = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
            left -= size as u64;
            self.send(&block[..size], ends && left == 0).await?;
        }
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8], ends: bool) -> io::Result<()> {
        if ends {
            self.answered();
        }
        self.out.write_all(bytes).await
    }

    fn answered(&mut self) {
        if let Some(call) = self.call.take() {
            call.answered();
        }
    }
}
