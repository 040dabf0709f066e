//! Reads requests off a connection, one after the other.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::recorded::Recorded;

/// Heads and bodies beyond this are refused, so that a runaway client cannot fill the memory.
pub(super) const LIMIT: usize = 1024 * 1024;

/// A complete request and whether its client means to keep the connection.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) recorded: Recorded,
    pub(super) keep_alive: bool,
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The client left.
    Gone,
    /// What it sent is answered with this status.
    Refused(u16),
}

/// The receiving side of a connection: the socket and what was read ahead of need.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) stream: &'a mut TcpStream,
    pub(super) ahead: &'a mut Vec<u8>,
    pub(super) connection: usize,
}

impl Incoming<'_> {
    /// Waits for the next complete request.
    pub(super) async fn request(mut self) -> Result<Request, NoRequest> {
        let head = self.take_through(b"\r\n\r\n", 431).await?;
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let &[method, target, version @ ("HTTP/1.1" | "HTTP/1.0")] = first.as_slice() else {
            return Err(NoRequest::Refused(400));
        };
        let mut headers = Vec::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').ok_or(NoRequest::Refused(400))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut recorded = Recorded {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: Vec::new(),
            connection: self.connection,
        };
        recorded.body = self.body(&recorded).await?;
        let says = |word: &str| {
            let connection = recorded.header("connection").unwrap_or_default();
            connection.split(',').any(|option| option.trim().eq_ignore_ascii_case(word))
        };
        let keep_alive = match version {
            "HTTP/1.0" => says("keep-alive"),
            _ => !says("close"),
        };
        Ok(Request { recorded, keep_alive })
    }

    /// The body that the headers announce.
    async fn body(&mut self, request: &Recorded) -> Result<Vec<u8>, NoRequest> {
        let chunked = match request.header("transfer-encoding") {
            None => false,
            Some(coding) if coding.eq_ignore_ascii_case("chunked") => true,
            Some(_) => return Err(NoRequest::Refused(400)),
        };
        let length = match request.header("content-length") {
            None => 0,
            // Two framings are how requests are smuggled; no honest client sends both.
            Some(_) if chunked => return Err(NoRequest::Refused(400)),
            Some(length) => length.parse().map_err(|_| NoRequest::Refused(400))?,
        };
        if length > LIMIT {
            return Err(NoRequest::Refused(413));
        }
        let waits = request.header("expect").unwrap_or_default();
        if waits.eq_ignore_ascii_case("100-continue") && (chunked || length > 0) {
            let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
            let sent = self.stream.write_all(go_on).await;
            sent.map_err(|_| NoRequest::Gone)?;
        }
        if chunked { self.chunks().await } else { self.take(length).await }
    }

    /// A chunked body, with its trailers dropped.
    async fn chunks(&mut self) -> Result<Vec<u8>, NoRequest> {
        let mut body = Vec::new();
        loop {
            let line = self.take_through(b"\r\n", 400).await?;
            let line = String::from_utf8_lossy(&line);
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| NoRequest::Refused(400))?;
            if size == 0 {
                break;
            }
            if size > LIMIT - body.len() {
                return Err(NoRequest::Refused(413));
            }
            body.extend(self.take(size).await?);
            if self.take(2).await? != b"\r\n" {
                return Err(NoRequest::Refused(400));
            }
        }
        while self.take_through(b"\r\n", 431).await? != b"\r\n" {}
        Ok(body)
    }

    /// The bytes up to and including the mark.
    async fn take_through(&mut self, mark: &[u8], too_long: u16) -> Result<Vec<u8>, NoRequest> {
        let mut from = 0;
        loop {
            let mut places = self.ahead[from..].windows(mark.len());
            if let Some(at) = places.position(|bytes| bytes == mark) {
                let rest = self.ahead.split_off(from + at + mark.len());
                return Ok(std::mem::replace(self.ahead, rest));
            }
            if self.ahead.len() > LIMIT {
                return Err(NoRequest::Refused(too_long));
            }
            // The mark may begin in what is here already.
            from = (self.ahead.len() + 1).saturating_sub(mark.len());
            self.more().await?;
        }
    }

    /// Exactly that many bytes.
    async fn take(&mut self, count: usize) -> Result<Vec<u8>, NoRequest> {
        while self.ahead.len() < count {
            self.more().await?;
        }
        let rest = self.ahead.split_off(count);
        Ok(std::mem::replace(self.ahead, rest))
    }

    /// Reads what has arrived.
    async fn more(&mut self) -> Result<(), NoRequest> {
        self.ahead.reserve(4096);
        match self.stream.read_buf(self.ahead).await {
            Ok(0) | Err(_) => Err(NoRequest::Gone),
            Ok(_) => Ok(()),
        }
    }
}
