//! A client on a raw socket, which sees every byte.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::provider::{Behaviour, Provider};

/// What arrives within this time has arrived; only proofs of silence ever wait for it.
pub const SILENCE: Duration = Duration::from_millis(150);

/// No read in these tests takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Client {
    pub stream: TcpStream,
    pub ahead: Vec<u8>,
}

/// An answer taken apart.
#[derive(Debug)]
pub struct Answer {
    pub head: String,
    pub code: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n").skip(1);
    lines.find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

pub fn claims() -> Value {
    json!({"aud": "vestibule", "exp": 2_000_000_000, "sub": "ada"})
}

/// A provider that accepts the token `good` and behaves like this.
pub async fn provider(behaviour: Behaviour) -> Provider {
    let provider = Provider::start().await;
    provider.accept("good", claims());
    provider.behave(behaviour);
    provider
}

impl Client {
    pub async fn to(provider: &Provider) -> Self {
        Self::at(provider.address()).await
    }

    pub async fn at(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("it accepts");
        stream.set_nodelay(true).expect("a live socket");
        Self { stream, ahead: Vec::new() }
    }

    pub async fn send(&mut self, bytes: &str) {
        let sent = self.stream.write_all(bytes.as_bytes()).await;
        sent.expect("the provider reads");
    }

    pub async fn ask(&mut self, token: &str) {
        let request = format!("GET /tokeninfo?id_token={token} HTTP/1.1\r\nhost: idp\r\n\r\n");
        self.send(&request).await;
    }

    pub async fn get(&mut self, token: &str) -> Answer {
        self.ask(token).await;
        self.answer().await
    }

    pub async fn head(&mut self) -> String {
        loop {
            let end = self.ahead.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(at) = end {
                let rest = self.ahead.split_off(at + 4);
                let head = std::mem::replace(&mut self.ahead, rest);
                return String::from_utf8(head).expect("the head is text");
            }
            assert_ne!(self.more().await.expect("no error"), 0, "no whole head");
        }
    }

    pub async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = header(&head, "content-length").map_or(0, |text| text.parse().expect("a length"));
        while self.ahead.len() < length {
            assert_ne!(self.more().await.expect("no error"), 0, "no whole body");
        }
        let rest = self.ahead.split_off(length);
        let code = head[9..12].parse().expect("a status code");
        Answer { code, body: std::mem::replace(&mut self.ahead, rest), head }
    }

    /// One read.
    pub async fn more(&mut self) -> io::Result<usize> {
        let read = self.stream.read_buf(&mut self.ahead);
        timeout(TIMEOUT, read).await.expect("something happens")
    }

    /// Everything until the connection ends, and how it ended.
    pub async fn rest(mut self) -> (Vec<u8>, io::Result<()>) {
        loop {
            match self.more().await {
                Ok(0) => return (self.ahead, Ok(())),
                Ok(_) => {}
                Err(error) => return (self.ahead, Err(error)),
            }
        }
    }

    /// Proves that nothing comes and that the connection stays.
    pub async fn hears_nothing(&mut self) {
        assert!(self.ahead.is_empty(), "already here: {:?}", self.ahead);
        let read = timeout(SILENCE, self.stream.read_buf(&mut self.ahead)).await;
        assert!(read.is_err(), "heard {read:?}");
    }

    /// Proves that the provider closes in good order and sends nothing before.
    pub async fn sees_a_close(self) {
        let (bytes, end) = self.rest().await;
        assert!(end.is_ok() && bytes.is_empty(), "{end:?} after {bytes:?}");
    }
}

pub fn is_reset(end: &io::Result<()>) -> bool {
    matches!(end, Err(error) if error.kind() == io::ErrorKind::ConnectionReset)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
