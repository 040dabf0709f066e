//! The ways a provider can answer, honest and otherwise.

use std::time::Duration;

use serde_json::Value;

use super::answer::{Answer, reason};
use super::craft::{
    endless_chunked, endless_headers, gzip_bomb, huge, json, lying, many_headers, status, whole,
};
use super::script::{Step, half, trickle};

/// What the provider does with a request; "the usual answer" is what [`Behaviour::Usual`] would send.
#[derive(Clone, Debug, Default)]
pub enum Behaviour {
    /// 200 and the claims of an accepted token, 400 `invalid_token` for any other.
    #[default]
    Usual,
    /// This answer; a 101 or another 1xx is followed by silence, for no final answer can be made of it.
    Status {
        /// The status code.
        code: u16,
        /// Headers as they are; a `Content-Length` is added unless the framing is here.
        headers: Vec<(String, String)>,
        /// The body; a 204 or 304 sends it too, wrong as that is.
        body: Vec<u8>,
    },
    /// 200 `application/json` with this value.
    Json(Value),
    /// 200 with these bytes under this type.
    RawBody {
        /// The `Content-Type`.
        content_type: String,
        /// The body.
        bytes: Vec<u8>,
    },
    /// These bytes instead of an HTTP answer, then the connection is closed.
    RawBytes(Vec<u8>),
    /// These steps, whatever they are; the connection stays open unless they end it.
    Script(Vec<Step>),
    /// A redirection without a body.
    Redirect {
        /// The status code; 307 and 308 ask the client to send the token again.
        code: u16,
        /// The `Location`.
        to: String,
    },
    /// Nothing for a while, then another behaviour.
    Delay {
        /// How long nothing happens.
        before: Duration,
        /// What happens after it.
        then: Box<Behaviour>,
    },
    /// The head of another behaviour at once, and everything after it one byte at a time.
    Trickle {
        /// How long it waits between two bytes.
        interval: Duration,
        /// What is sent so slowly.
        of: Box<Behaviour>,
    },
    /// An interim answer (100, 102, 103) before another behaviour.
    Interim {
        /// The interim status code.
        code: u16,
        /// What follows it.
        then: Box<Behaviour>,
    },
    /// The usual answer padded with spaces to that many bytes: valid, and far too large.
    Huge(u64),
    /// The usual answer as the first chunk of a body of spaces that never ends.
    EndlessChunked,
    /// The usual answer whose headers never end.
    EndlessHeaders,
    /// 200 JSON whose `Content-Length` is wrong; when it claims too much, the connection is closed.
    LyingContentLength {
        /// The length that is claimed.
        claimed: u64,
        /// The body that is sent.
        body: Vec<u8>,
    },
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
    /// The usual answer with `Connection: close`, which it keeps.
    CloseAfterEachAnswer,
    /// The usual answer as if the connection stayed, and then it is closed.
    CloseIdleSilently,
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

impl Behaviour {
    /// An answer of this status with neither headers nor body.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::Status { code, headers: Vec::new(), body: Vec::new() }
    }

    /// 200 with these bytes under this type.
    #[must_use]
    pub fn body(content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self::RawBody { content_type: content_type.to_owned(), bytes: bytes.into() }
    }

    /// This behaviour after a delay.
    #[must_use]
    pub fn delayed(self, before: Duration) -> Self {
        Self::Delay { before, then: Box::new(self) }
    }

    /// This behaviour with everything after its head one byte at a time.
    #[must_use]
    pub fn trickled(self, interval: Duration) -> Self {
        Self::Trickle { interval, of: Box::new(self) }
    }

    /// This behaviour after an interim answer.
    #[must_use]
    pub fn after_interim(self, code: u16) -> Self {
        Self::Interim { code, then: Box::new(self) }
    }

    /// This behaviour, but connections are dead when they are used again.
    #[must_use]
    pub fn dead_on_reuse(self) -> Self {
        Self::DeadOnReuse(Box::new(self))
    }

    /// The steps that carry it out, given the usual answer and whether the connection was used before.
    pub(super) fn steps(&self, usual: &Answer, reused: bool) -> Vec<Step> {
        match self {
            Self::Status { code, headers, body } => {
                status(&Answer { code: *code, headers: headers.clone(), body: body.clone() })
            }
            Self::Json(value) => whole(&json(value.to_string().into_bytes())),
            Self::RawBody { content_type, bytes } => whole(&Answer::new(200, content_type, bytes.clone())),
            Self::RawBytes(bytes) => vec![Step::Write(bytes.clone()), Step::Close],
            Self::Script(steps) => steps.clone(),
            Self::Redirect { code, to } => {
                let headers = vec![("location".to_owned(), to.clone())];
                status(&Answer { code: *code, headers, body: Vec::new() })
            }
            Self::Delay { before, then } => {
                let mut steps = vec![Step::Pause(*before)];
                steps.extend(then.steps(usual, reused));
                steps
            }
            Self::Trickle { interval, of } => trickle(of.steps(usual, reused), *interval),
            Self::Interim { code, then } => {
                let head = format!("HTTP/1.1 {code} {}\r\n\r\n", reason(*code));
                let mut steps = vec![Step::Write(head.into_bytes())];
                steps.extend(then.steps(usual, reused));
                steps
            }
            Self::Huge(total) => huge(usual, *total),
            Self::EndlessChunked => endless_chunked(usual),
            Self::EndlessHeaders => endless_headers(usual),
            Self::LyingContentLength { claimed, body } => lying(*claimed, body),
            Self::GzipBomb(inflated) => gzip_bomb(usual, *inflated),
            Self::ResetOnConnect | Self::ResetBeforeAnswer => vec![Step::Reset],
            Self::ResetMidBody => vec![half(usual.bytes()), Step::Reset],
            Self::CloseBeforeAnswer => vec![Step::Close],
            Self::CloseAfterHalf => vec![half(usual.bytes()), Step::Close],
            Self::StallAfterHalf => vec![half(usual.bytes()), Step::Hang],
            Self::CloseAfterEachAnswer => whole(&usual.clone().with("connection", "close")),
            Self::CloseIdleSilently => vec![Step::Write(usual.bytes()), Step::Close],
            Self::DeadOnReuse(_) if reused => vec![Step::Close],
            Self::DeadOnReuse(then) => then.steps(usual, reused),
            Self::Usual => whole(usual),
            Self::ManyHeaders(count) => many_headers(usual, *count),
            Self::HugeHeader(bytes) => whole(&usual.clone().with("x-filler", &"x".repeat(*bytes))),
            Self::Http09 => vec![Step::Write(usual.body.clone()), Step::Close],
            Self::NeverAnswer => vec![Step::Hang],
        }
    }
}
