//! A receiver of webhooks over real HTTP, as good or as bad as a test wants it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::process::eventually;

/// A secret of the tests, as it is written in settings.
pub const SECRET: &str = "whsec_dGhlIHdlYmhvb2sgc2VjcmV0IG9mIHRoZSB0ZXN0cw==";

/// A request that it got.
#[derive(Debug, Clone)]
pub struct Received {
    /// The first line.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The type of message.
    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// The user it is about.
    pub fn user(&self) -> String {
        self.json()["data"]["user_id"].as_str().unwrap_or_default().to_owned()
    }
}

/// An answer to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// That status.
    Status(u16),
    /// The head as it is written here.
    Head(&'static str),
    /// None, while the connection stays open.
    Hang,
    /// The status after a while.
    Slow(Duration, u16),
    /// The status, and then a body that never ends: a byte at a time.
    Drip(u16),
    /// The status, and then as many bytes as the other side takes.
    Flood(u16),
    /// The end of the connection.
    Close,
}

type Behaviour = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

/// A receiver on a port of this machine.
pub struct Receiver {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
    behaviour: Arc<Mutex<Behaviour>>,
    /// The bytes of the longest body that somebody took.
    pub taken: Arc<Mutex<usize>>,
    _served: JoinSet<()>,
}

impl Receiver {
    /// Starts one that accepts everything.
    pub async fn start() -> Self {
        Self::start_with(|_| Reply::Status(204)).await
    }

    pub async fn start_with(behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_on(0, behaviour).await
    }

    /// Starts one on that port.
    pub async fn start_on(port: u16, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let url = format!("http://{}/hooks", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let behaviour: Arc<Mutex<Behaviour>> = Arc::new(Mutex::new(Arc::new(behaviour)));
        let taken: Arc<Mutex<usize>> = Arc::default();
        let mut served = JoinSet::new();
        let (kept, behaves, counted) = (received.clone(), behaviour.clone(), taken.clone());
        served.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (kept, behaves, counted) = (kept.clone(), behaves.clone(), counted.clone());
                connections.spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(request) = read(&mut stream).await {
                        kept.lock().unwrap().push(request.clone());
                        let behaviour = behaves.lock().unwrap().clone();
                        if answer(stream.get_mut(), behaviour(&request), &counted).await.is_none() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, received, behaviour, taken, _served: served }
    }

    /// Behaves in another way from now on.
    pub fn behave(&self, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        *self.behaviour.lock().unwrap() = Arc::new(behaviour);
    }

    /// All requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until there are that many requests.
    pub async fn received_all(&self, count: usize) -> Vec<Received> {
        eventually(&format!("the receiver has {count} messages"), async || {
            let received = self.received();
            (received.len() >= count).then_some(received)
        })
        .await
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: Vec<_> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut received = Received { line: lines[0].clone(), headers, body: String::new() };
    let mut body = vec![0; received.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    received.body = String::from_utf8(body).unwrap();
    Some(received)
}

/// Returns `None` if the connection is of no more use.
async fn answer(stream: &mut TcpStream, reply: Reply, taken: &Mutex<usize>) -> Option<()> {
    let head = |status: u16, rest: &str| format!("HTTP/1.1 {status} Answer\r\n{rest}\r\n\r\n");
    match reply {
        Reply::Status(status) => stream.write_all(head(status, "Content-Length: 0").as_bytes()).await.ok(),
        Reply::Head(text) => stream.write_all(text.as_bytes()).await.ok(),
        Reply::Hang => std::future::pending().await,
        Reply::Slow(time, status) => {
            tokio::time::sleep(time).await;
            stream.write_all(head(status, "Content-Length: 0").as_bytes()).await.ok()
        }
        Reply::Drip(status) => {
            stream.write_all(head(status, "Content-Length: 1000000").as_bytes()).await.ok()?;
            loop {
                stream.write_all(b"x").await.ok()?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Reply::Flood(status) => {
            stream.write_all(head(status, "Content-Length: 8000000000").as_bytes()).await.ok()?;
            let (chunk, mut written) = (vec![b'x'; 65_536], 0);
            while stream.write_all(&chunk).await.is_ok() {
                written += chunk.len();
                let mut taken = taken.lock().unwrap();
                *taken = written.max(*taken);
            }
            None
        }
        Reply::Close => None,
    }
}
