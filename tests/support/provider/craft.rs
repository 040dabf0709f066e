//! Builds the steps of the behaviours that take some making.

use std::fmt::Write as _;

use super::answer::Answer;
use super::gzip;
use super::script::Step;

/// Padding is sent in blocks of this size.
const BLOCK: usize = 64 * 1024;

/// A 200 with JSON.
pub(super) fn json(body: Vec<u8>) -> Answer {
    Answer::new(200, "application/json", body)
}

/// The answer in one piece, and the close it announced.
pub(super) fn whole(answer: &Answer) -> Vec<Step> {
    let mut steps = vec![Step::Write(answer.bytes())];
    if answer.closes() {
        steps.push(Step::Close);
    }
    steps
}

/// An answer of any status; after a 1xx the client still waits, or speaks another protocol.
pub(super) fn status(answer: &Answer) -> Vec<Step> {
    let mut steps = whole(answer);
    if answer.code < 200 {
        steps.push(Step::Hang);
    }
    steps
}

/// The answer followed by spaces, which JSON allows, so that only its size is wrong.
pub(super) fn huge(usual: &Answer, total: u64) -> Vec<Step> {
    let length = usual.body.len() as u64;
    let total = total.max(length);
    let mut answer = usual.clone().with("content-length", &total.to_string());
    let body = std::mem::take(&mut answer.body);
    let mut first = answer.head();
    first.extend(body);
    let mut steps = vec![Step::Write(first)];
    if total > length {
        steps.push(Step::Fill { block: vec![b' '; BLOCK], total: total - length });
    }
    steps
}

/// The answer as the first of chunks that never end.
pub(super) fn endless_chunked(usual: &Answer) -> Vec<Step> {
    let answer = usual.clone().with("transfer-encoding", "chunked");
    let mut first = answer.head();
    first.extend(chunk(&usual.body));
    vec![Step::Write(first), Step::Forever(chunk(&vec![b' '; BLOCK]))]
}

/// One chunk of a chunked body.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// The answer with headers that never end.
pub(super) fn endless_headers(usual: &Answer) -> Vec<Step> {
    let mut head = usual.head();
    // Without the empty line the head is still open.
    head.truncate(head.len() - 2);
    vec![Step::Write(head), Step::Forever(b"x-filler: xxxxxxxxxxxxxxxx\r\n".repeat(512))]
}

/// JSON under a length that is not its own.
pub(super) fn lying(claimed: u64, body: &[u8]) -> Vec<Step> {
    let answer = json(body.to_vec()).with("content-length", &claimed.to_string());
    let mut steps = vec![Step::Write(answer.bytes())];
    if claimed > body.len() as u64 {
        steps.push(Step::Close);
    }
    steps
}

/// The answer, padded, as a gzip stream.
pub(super) fn gzip_bomb(usual: &Answer, inflated: usize) -> Vec<Step> {
    let mut answer = usual.clone().with("content-encoding", "gzip");
    answer.body = gzip::padded(&usual.body, inflated);
    whole(&answer)
}

/// The answer with that many headers more.
pub(super) fn many_headers(usual: &Answer, count: usize) -> Vec<Step> {
    let mut head = usual.head();
    head.truncate(head.len() - 2);
    let mut fillers = String::new();
    for number in 0..count {
        // Writing to a string cannot fail.
        let _ = write!(fillers, "x-filler-{number}: x\r\n");
    }
    fillers.push_str("\r\n");
    head.extend(fillers.into_bytes());
    head.extend_from_slice(&usual.body);
    vec![Step::Write(head)]
}
