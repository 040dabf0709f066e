//! The provider's behaviours, correct and otherwise.

use std::time::Duration;

use serde_json::Value;

use super::answer::Answer;

const JSON: &str = "application/json";

/// The provider's behaviour for a request. "The usual answer" is the response of
/// [`Behaviour::Usual`].
#[derive(Clone, Debug, Default)]
pub enum Behaviour {
    /// 200 and the claims of an accepted token, 400 `invalid_token` for any other.
    #[default]
    Usual,
    /// This answer; a 101 or another 1xx is followed by silence, for no final answer can be made of
    /// it.
    Status {
        code: u16,
        /// Headers as they are; a `Content-Length` is added.
        headers: Vec<(String, String)>,
        /// The body; a 204 or 304 sends it too, wrong as that is.
        body: Vec<u8>,
    },
    /// 200 `application/json` with this value.
    Json(Value),
    /// A redirection without a body; 307 and 308 ask the client to send the token again.
    Redirect { code: u16, to: String },
    /// These bytes instead of an HTTP answer.
    Raw(Vec<u8>, End),
    /// The usual answer with the first half of its body.
    Half(End),
    /// Nothing for a while, then another behaviour.
    Delay {
        before: Duration,
        then: Box<Behaviour>,
    },
    /// The head of another behaviour at once, and everything after it one byte at a time.
    Trickle {
        interval: Duration,
        of: Box<Behaviour>,
    },
    /// Resets new connections; a request on an older connection is reset before an answer.
    ResetOnConnect,
    /// Another behaviour once per connection; a second request on it is closed unanswered.
    DeadOnReuse(Box<Behaviour>),
}

/// The actions on the connection that make up a behaviour.
pub(super) struct Plan {
    /// The delay before the first byte.
    pub(super) delay: Option<Duration>,
    /// The bytes to write, piece by piece.
    pub(super) pieces: Vec<Vec<u8>>,
    /// The pause between two pieces.
    pub(super) interval: Duration,
    pub(super) end: End,
}

/// The action after the last byte.
#[derive(Clone, Debug)]
pub enum End {
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
    /// Reads the request and resets the connection.
    pub const RESET: Self = Self::Raw(Vec::new(), End::Reset);
    /// Reads the request and closes the connection.
    pub const CLOSE: Self = Self::Raw(Vec::new(), End::Close);
    /// Reads the request and says nothing until the client leaves.
    pub const NEVER_ANSWER: Self = Self::Raw(Vec::new(), End::Hang);

    /// An answer of this status with neither headers nor body.
    pub fn status(code: u16) -> Self {
        Self::Status {
            code,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// 200 with these bytes under this type.
    pub fn body(content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self::Status {
            code: 200,
            headers,
            body: bytes.into(),
        }
    }

    /// An answer of this status with this JSON.
    pub fn json(code: u16, text: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), JSON.to_owned())];
        Self::Status {
            code,
            headers,
            body: text.into(),
        }
    }

    /// This behaviour after a delay.
    pub fn delayed(self, before: Duration) -> Self {
        Self::Delay {
            before,
            then: Box::new(self),
        }
    }

    /// Like this behaviour, but the body is sent one byte at a time.
    pub fn trickled(self, interval: Duration) -> Self {
        Self::Trickle {
            interval,
            of: Box::new(self),
        }
    }

    /// This behaviour, but connections are dead when they are used again.
    pub fn dead_on_reuse(self) -> Self {
        Self::DeadOnReuse(Box::new(self))
    }

    /// The plan for this behaviour, given the usual answer and whether the connection was used
    /// before.
    pub(super) fn plan(&self, usual: &Answer, reused: bool) -> Plan {
        let (bytes, end) = match self {
            Self::Usual => (usual.bytes(), End::Stay),
            Self::Status {
                code,
                headers,
                body,
            } => {
                let answer = Answer {
                    code: *code,
                    headers: headers.clone(),
                    body: body.clone(),
                };
                (
                    answer.bytes(),
                    if *code < 200 { End::Hang } else { End::Stay },
                )
            }
            Self::Json(value) => (
                Answer::new(200, JSON, value.to_string().into()).bytes(),
                End::Stay,
            ),
            Self::Redirect { code, to } => {
                let answer = Answer {
                    code: *code,
                    headers: Vec::new(),
                    body: Vec::new(),
                };
                (answer.with("location", to).bytes(), End::Stay)
            }
            Self::Delay { before, then } => {
                return Plan {
                    delay: Some(*before),
                    ..then.plan(usual, reused)
                };
            }
            Self::Trickle { interval, of } => {
                let plan = of.plan(usual, reused);
                let bytes = plan.pieces.concat();
                let (head, rest) = bytes.split_at(head_length(&bytes));
                let pieces = [head]
                    .into_iter()
                    .chain(rest.chunks(1))
                    .map(<[u8]>::to_vec)
                    .collect();
                return Plan {
                    pieces,
                    interval: *interval,
                    ..plan
                };
            }
            Self::Raw(bytes, end) => (bytes.clone(), end.clone()),
            Self::Half(end) => {
                let mut bytes = usual.bytes();
                bytes.truncate(bytes.len() - usual.body.len().div_ceil(2));
                (bytes, end.clone())
            }
            Self::ResetOnConnect => (Vec::new(), End::Reset),
            Self::DeadOnReuse(_) if reused => (Vec::new(), End::Close),
            Self::DeadOnReuse(then) => return then.plan(usual, reused),
        };
        Plan {
            delay: None,
            pieces: vec![bytes],
            interval: Duration::ZERO,
            end,
        }
    }
}

/// The length of the head; zero for bytes without a head.
fn head_length(bytes: &[u8]) -> usize {
    bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map_or(0, |at| at + 4)
}
