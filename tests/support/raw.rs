//! A client that sends arbitrary bytes, which no HTTP library would send.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::app::{Answer, App};

/// A wait fails the test after this long instead of hanging the whole run.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to the service.
pub struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Raw {
    pub async fn connect(app: &App) -> Self {
        let address = app.url.strip_prefix("http://").expect("plain HTTP");
        Self {
            stream: TcpStream::connect(address)
                .await
                .expect("the service listens"),
            received: Vec::new(),
        }
    }

    /// Sends a request with these lines in its head, and this body, on a new connection. Returns
    /// the response.
    pub async fn ask(app: &App, lines: impl AsRef<[u8]>, body: &str) -> Answer {
        let mut raw = Self::connect(app).await;
        let rest = format!(
            "Host: vestibule\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        raw.send([lines.as_ref(), rest.as_bytes()].concat()).await;
        raw.answer().await.expect("an answer")
    }

    /// Sends bytes. Ignores a failure, since the service may have closed the connection.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = timeout(TIMEOUT, self.stream.write_all(bytes.as_ref()))
            .await
            .expect("the service reads");
    }

    /// The response to a request that begins with `start`. A response to `HEAD` has no body.
    pub async fn answer_to(&mut self, start: &str) -> Option<Answer> {
        self.read(start.starts_with("HEAD ")).await
    }

    /// The next response, or `None` if the service closed the connection instead.
    pub async fn answer(&mut self) -> Option<Answer> {
        self.read(false).await
    }

    async fn read(&mut self, is_head: bool) -> Option<Answer> {
        let head = loop {
            if let Some(at) = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            {
                break self.received.drain(..at + 4).collect::<Vec<_>>();
            }
            if !self.receive().await {
                return None;
            }
        };
        let (status, headers) = parse(std::str::from_utf8(&head).expect("the head is text"));
        let length = headers.get("Content-Length").filter(|_| !is_head);
        let length = length.map_or(0, |n| n.to_str().unwrap().parse().unwrap());
        while self.received.len() < length {
            assert!(self.receive().await, "the answer ends too early");
        }
        let body = self.received.drain(..length).collect();
        Some(Answer {
            status,
            headers,
            text: String::from_utf8(body).expect("the body is text"),
        })
    }

    /// Waits until the service has closed the connection. The bytes before that remain to be read.
    pub async fn closed(&mut self) {
        while self.receive().await {}
    }

    /// Reads the available bytes. Returns `false` at the end of the connection.
    async fn receive(&mut self) -> bool {
        let read = timeout(TIMEOUT, self.stream.read_buf(&mut self.received)).await;
        read.expect("the service answers or closes")
            .is_ok_and(|count| count > 0)
    }
}

fn parse(head: &str) -> (StatusCode, HeaderMap) {
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .expect("a status line");
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
            (
                name,
                HeaderValue::from_str(value.trim()).expect("a header's value"),
            )
        });
    (status.parse().expect("a status"), headers.collect())
}
