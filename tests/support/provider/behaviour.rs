//! The ways a provider can answer, honest and otherwise.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::answer::Answer;

const JSON: &str = "application/json";
/// Padding without an end is sent in blocks of this size.
const BLOCK: usize = 64 * 1024;

/// What the provider does with a request; "the usual answer" is what [`Behaviour::Usual`] would send.
#[derive(Clone, Debug, Default)]
pub enum Behaviour {
    /// 200 and the claims of an accepted token, 400 `invalid_token` for any other.
    #[default]
    Usual,
    /// This answer; a 101 or another 1xx is followed by silence, for no final answer can be made of it.
    Status {
        code: u16,
        /// Headers as they are; a `Content-Length` is added.
        headers: Vec<(String, String)>,
        /// The body; a 204 or 304 sends it too, wrong as that is.
        body: Vec<u8>,
    },
    /// 200 `application/json` with this value.
    Json(Value),
    /// These bytes instead of an HTTP answer, then the connection is closed.
    RawBytes(Vec<u8>),
    /// A redirection without a body; 307 and 308 ask the client to send the token again.
    Redirect { code: u16, to: String },
    /// Nothing for a while, then another behaviour.
    Delay { before: Duration, then: Box<Behaviour> },
    /// The head of another behaviour at once, and everything after it one byte at a time.
    Trickle { interval: Duration, of: Box<Behaviour> },
    /// The usual answer padded with spaces to that many bytes: valid, and far too large.
    Huge(u64),
    /// The usual answer as the first chunk of a body of spaces that never ends.
    EndlessChunked,
    /// The usual answer whose headers never end.
    EndlessHeaders,
    /// 200 JSON whose `Content-Length` is wrong; when it claims too much, the connection is closed.
    LyingContentLength { claimed: u64, body: Vec<u8> },
    /// The usual answer, padded with spaces to that many bytes, as a small gzip stream.
    GzipBomb(usize),
    /// Resets new connections; a request on an older connection is reset before an answer.
    ResetOnConnect,
    /// Reads the request and resets the connection.
    ResetBeforeAnswer,
    /// Sends half the usual body and resets the connection.
    ResetMidBody,
    /// Reads the request and closes the connection.
    CloseBeforeAnswer,
    /// Sends half the usual body and closes the connection.
    CloseAfterHalf,
    /// Sends half the usual body and then nothing more.
    StallAfterHalf,
    /// Another behaviour once per connection; a second request on it is closed unanswered.
    DeadOnReuse(Box<Behaviour>),
    /// The usual answer with that many headers more.
    ManyHeaders(usize),
    /// The usual answer with one header more, whose value has that many bytes.
    HugeHeader(usize),
    /// The usual body without a status line and headers, then the connection is closed.
    Http09,
    /// Reads the request and says nothing until the client leaves.
    NeverAnswer,
}

/// What is done on the connection in place of an answer.
pub(super) struct Plan {
    /// How long nothing happens before.
    pub(super) delay: Option<Duration>,
    /// What is written, piece by piece.
    pub(super) pieces: Vec<Vec<u8>>,
    /// How long it waits between two pieces.
    pub(super) interval: Duration,
    pub(super) end: End,
}

/// What comes after the pieces.
pub(super) enum End {
    /// The connection is ready for the next request.
    Stay,
    /// The connection is closed in good order (FIN).
    Close,
    /// The connection is torn down (RST).
    Reset,
    /// Nothing happens until the client leaves.
    Hang,
    /// A block is sent again and again until the client leaves.
    Repeat(Vec<u8>),
}

impl Behaviour {
    /// An answer of this status with neither headers nor body.
    pub fn status(code: u16) -> Self {
        Self::Status { code, headers: Vec::new(), body: Vec::new() }
    }

    /// 200 with these bytes under this type.
    pub fn body(content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self::Status { code: 200, headers, body: bytes.into() }
    }

    /// An answer of this status with this JSON.
    pub fn json(code: u16, text: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), JSON.to_owned())];
        Self::Status { code, headers, body: text.into() }
    }

    /// This behaviour after a delay.
    pub fn delayed(self, before: Duration) -> Self {
        Self::Delay { before, then: Box::new(self) }
    }

    /// This behaviour with everything after its head one byte at a time.
    pub fn trickled(self, interval: Duration) -> Self {
        Self::Trickle { interval, of: Box::new(self) }
    }

    /// This behaviour, but connections are dead when they are used again.
    pub fn dead_on_reuse(self) -> Self {
        Self::DeadOnReuse(Box::new(self))
    }

    /// How it is carried out, given the usual answer and whether the connection was used before.
    pub(super) fn plan(&self, usual: &Answer, reused: bool) -> Plan {
        let (bytes, end) = match self {
            Self::Usual => (usual.bytes(), End::Stay),
            Self::Status { code, headers, body } => {
                let answer = Answer { code: *code, headers: headers.clone(), body: body.clone() };
                (answer.bytes(), if *code < 200 { End::Hang } else { End::Stay })
            }
            Self::Json(value) => (Answer::new(200, JSON, value.to_string().into()).bytes(), End::Stay),
            Self::RawBytes(bytes) => (bytes.clone(), End::Close),
            Self::Redirect { code, to } => {
                let answer = Answer { code: *code, headers: Vec::new(), body: Vec::new() };
                (answer.with("location", to).bytes(), End::Stay)
            }
            Self::Delay { before, then } => return Plan { delay: Some(*before), ..then.plan(usual, reused) },
            Self::Trickle { interval, of } => {
                let plan = of.plan(usual, reused);
                let bytes = plan.pieces.concat();
                let (head, rest) = bytes.split_at(head_length(&bytes));
                let pieces = [head].into_iter().chain(rest.chunks(1)).map(<[u8]>::to_vec).collect();
                return Plan { pieces, interval: *interval, ..plan };
            }
            // A client takes as many of the spaces as the length says.
            Self::Huge(length) => {
                let answer = usual.clone().with("content-length", &length.to_string());
                (answer.bytes(), End::Repeat(b" ".repeat(BLOCK)))
            }
            Self::EndlessChunked => {
                let chunk =
                    |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
                let mut answer = usual.clone().with("transfer-encoding", "chunked");
                answer.body = chunk(&usual.body);
                (answer.bytes(), End::Repeat(chunk(&b" ".repeat(BLOCK))))
            }
            Self::EndlessHeaders => {
                (usual.head().into(), End::Repeat(b"x-filler: xxxxxxxxxxxxxxxx\r\n".repeat(512)))
            }
            Self::LyingContentLength { claimed, body } => {
                let answer = Answer::new(200, JSON, body.clone());
                let answer = answer.with("content-length", &claimed.to_string());
                let end = if *claimed > body.len() as u64 { End::Close } else { End::Stay };
                (answer.bytes(), end)
            }
            Self::GzipBomb(length) => {
                let mut answer = usual.clone().with("content-encoding", "gzip");
                answer.body.resize(*length, b' ');
                answer.body = gzip(&answer.body);
                (answer.bytes(), End::Stay)
            }
            Self::ResetOnConnect | Self::ResetBeforeAnswer => (Vec::new(), End::Reset),
            Self::ResetMidBody => (half(usual), End::Reset),
            Self::CloseBeforeAnswer => (Vec::new(), End::Close),
            Self::CloseAfterHalf => (half(usual), End::Close),
            Self::StallAfterHalf => (half(usual), End::Hang),
            Self::DeadOnReuse(_) if reused => (Vec::new(), End::Close),
            Self::DeadOnReuse(then) => return then.plan(usual, reused),
            Self::ManyHeaders(count) => {
                let more = |answer: Answer, number| answer.with(&format!("x-filler-{number}"), "x");
                ((0..*count).fold(usual.clone(), more).bytes(), End::Stay)
            }
            Self::HugeHeader(length) => {
                (usual.clone().with("x-filler", &"x".repeat(*length)).bytes(), End::Stay)
            }
            Self::Http09 => (usual.body.clone(), End::Close),
            Self::NeverAnswer => (Vec::new(), End::Hang),
        };
        Plan { delay: None, pieces: vec![bytes], interval: Duration::ZERO, end }
    }
}

/// The head and the first half of the body.
fn half(answer: &Answer) -> Vec<u8> {
    let mut bytes = answer.bytes();
    bytes.truncate(bytes.len() - answer.body.len().div_ceil(2));
    bytes
}

/// Where the head ends; bytes without a head have none.
fn head_length(bytes: &[u8]) -> usize {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4)
}

/// By the program, which every system has: a library would be one more for the tests to build.
fn gzip(text: &[u8]) -> Vec<u8> {
    let gzip = Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut gzip = gzip.expect("gzip starts");
    // What comes out waits in the pipe until all is in, for it is small.
    gzip.stdin.take().unwrap().write_all(text).unwrap();
    gzip.wait_with_output().unwrap().stdout
}
