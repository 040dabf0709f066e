//! The reasons why a receiver has not accepted a message, in words for staff and in one word for
//! metrics.

use super::sender::TIMEOUT;

pub const DELIVERED: &str = "delivered";

/// A failed attempt. No text contains the URL or anything of the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The host's name has no IP address, or no resolver answers.
    #[error("the host name has no IP address")]
    NoAddress,
    #[error(
        "the host name leads to no address of the internet; set `private_network` if that is meant to be"
    )]
    PrivateNetwork,
    /// No connection, or no TLS connection.
    #[error("the connection failed: {0}")]
    Connect(String),
    /// Or the answer is not HTTP.
    #[error("the connection ended before the answer: {0}")]
    Connection(String),
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    #[error("the answer is a redirect ({0}), and none is followed")]
    Redirect(u16),
    #[error("the answer is 410: the receiver is gone")]
    Gone,
    #[error("the answer is {0}")]
    Status(u16),
    /// It is not sent. An instance of the other release may claim it for its next attempt.
    #[error("another release has queued the message, and this one cannot read it")]
    Unreadable,
}

impl Failure {
    /// Returns the failure in one word, for metrics.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::NoAddress => "no_address",
            Self::PrivateNetwork => "private_network",
            Self::Connect(_) => "connect",
            Self::Connection(_) => "connection",
            Self::Timeout => "timeout",
            Self::Redirect(_) => "status_3xx",
            Self::Gone | Self::Status(400..500) => "status_4xx",
            Self::Status(500..600) => "status_5xx",
            Self::Status(_) => "status_other",
            Self::Unreadable => "unreadable",
        }
    }

    /// The outcomes of attempts: [`DELIVERED`], and what [`class`](Self::class) returns.
    pub const OUTCOMES: [&'static str; 11] = [
        DELIVERED,
        "no_address",
        "private_network",
        "connect",
        "connection",
        "timeout",
        "status_3xx",
        "status_4xx",
        "status_5xx",
        "status_other",
        "unreadable",
    ];
}
