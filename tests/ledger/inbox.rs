//! A receiver as a process of its own, which can be killed. It accepts a message only after it has written it down.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, io};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use uuid::Uuid;

use crate::support::receiver::{Received, Receiver, Reply, SECRET};

const FILE: &str = "LEDGER_FILE";
const PORT: &str = "LEDGER_PORT";
const SOUND: &str = "LEDGER_SOUND";

/// The process, killed when it is dropped.
pub struct Inbox(Child);

impl Inbox {
    /// Starts one, in which the test of that name calls [`receive`]. A sound one accepts everything.
    pub fn start(test: &str, file: &Path, port: u16, sound: bool) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(FILE, file)
            .env(PORT, port.to_string())
            .env(SOUND, sound.to_string())
            // It ends with this process, however that ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A message as it was written down.
#[derive(Debug, Clone)]
pub struct Written {
    pub id: Uuid,
    pub kind: String,
    /// The users it is about.
    pub users: Vec<Uuid>,
}

/// All messages that were written down, in order.
pub fn written(file: &Path) -> Vec<Written> {
    let text = fs::read_to_string(file).unwrap();
    // A kill may have cut a line short: its message was not accepted.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .map(|line| {
            assert_eq!(line["mistake"], Value::Null, "{line}");
            let users = line["users"].as_array().unwrap().iter().map(uuid).collect();
            Written { id: uuid(&line["id"]), kind: line["type"].as_str().unwrap().to_owned(), users }
        })
        .collect()
}

fn uuid(value: &Value) -> Uuid {
    value.as_str().unwrap().parse().unwrap()
}

/// Receives messages in a process that [`Inbox`] has started, until the end of that one. Returns `false` in any other.
pub async fn receive() -> bool {
    let Some(file) = env::var_os(FILE).map(PathBuf::from) else { return false };
    let sound = env::var(SOUND).unwrap() == "true";
    let file = Mutex::new(OpenOptions::new().append(true).create(true).open(file).unwrap());
    // It ends a line that was cut short.
    file.lock().unwrap().write_all(b"\n").unwrap();
    let number = AtomicUsize::new(0);
    let _receiver = Receiver::start_on(env::var(PORT).unwrap().parse().unwrap(), move |message| {
        let write = || file.lock().unwrap().write_all(format!("{}\n", line(message)).as_bytes()).unwrap();
        match number.fetch_add(1, Ordering::Relaxed) % 400 {
            70 | 170 | 270 | 370 if !sound => Reply::Status(500),
            250 if !sound => Reply::Hang,
            // It has the message, and says otherwise.
            20 | 120 | 220 | 320 if !sound => {
                write();
                Reply::Status(500)
            }
            50 if !sound => {
                write();
                Reply::Hang
            }
            _ => {
                write();
                Reply::Status(200)
            }
        }
    })
    .await;
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    true
}

/// A message as it is written down, verified as receivers do.
fn line(message: &Received) -> Value {
    let headers = message.headers.iter();
    let headers: HeaderMap = headers
        .map(|(name, value)| (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap()))
        .collect();
    if let Err(mistake) = Webhook::new(SECRET).unwrap().verify(message.body.as_bytes(), &headers) {
        return json!({ "mistake": mistake.to_string() });
    }
    let body = message.json();
    let users = [&body["data"]["user_id"], &body["data"]["from"]];
    let users: Vec<_> = users.into_iter().filter(|user| user.is_string()).collect();
    json!({ "id": message.header("webhook-id"), "type": body["type"], "users": users })
}
