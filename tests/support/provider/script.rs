//! What happens on the wire, step by step, and the ways to bend it.

use std::time::Duration;

/// One thing the provider does on the connection in place of, or as part of, an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes at once.
    Write(Vec<u8>),
    /// Sends these bytes one at a time.
    Trickle {
        /// What is sent.
        bytes: Vec<u8>,
        /// How long it waits between two bytes.
        interval: Duration,
    },
    /// Sends a block again and again until that many bytes are out.
    Fill {
        /// What is repeated; it must not be empty.
        block: Vec<u8>,
        /// The bytes sent in all.
        total: u64,
    },
    /// Sends a block again and again until the client leaves.
    Forever(Vec<u8>),
    /// Does nothing for that long.
    Pause(Duration),
    /// Does nothing until the client leaves.
    Hang,
    /// Closes the connection in good order (FIN).
    Close,
    /// Tears the connection down (RST).
    Reset,
}

/// Lets the head out at once and everything after it byte by byte.
pub(super) fn trickle(steps: Vec<Step>, interval: Duration) -> Vec<Step> {
    let mut in_head = true;
    let mut slow = Vec::with_capacity(steps.len() + 1);
    for step in steps {
        let Step::Write(mut bytes) = step else {
            slow.push(step);
            continue;
        };
        if in_head {
            let rest = bytes.split_off(head_length(&bytes));
            slow.push(Step::Write(bytes));
            bytes = rest;
            in_head = false;
        }
        if !bytes.is_empty() {
            slow.push(Step::Trickle { bytes, interval });
        }
    }
    slow
}

/// The head and the first half of the body.
pub(super) fn half(mut answer: Vec<u8>) -> Step {
    let head = head_length(&answer);
    answer.truncate(head + (answer.len() - head) / 2);
    Step::Write(answer)
}

/// Where the head ends; bytes without a head have none.
fn head_length(bytes: &[u8]) -> usize {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    end.map_or(0, |at| at + 4)
}
