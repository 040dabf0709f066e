//! A receiver of webhooks that a test can stop during requests. It accepts a message only after it
//! has recorded it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use standardwebhooks::Webhook;
use uuid::Uuid;

use crate::support::provider::Behaviour;
use crate::support::receiver::{Received, Receiver, SECRET};

/// A recorded message.
#[derive(Debug, Clone)]
pub struct Written {
    pub id: Uuid,
    pub kind: String,
    pub users: Vec<Uuid>,
}

/// All messages in order of arrival; an error for an invalid message.
pub type Book = Arc<Mutex<Vec<Result<Written, String>>>>;

/// Starts a receiver at that port. A `sound` receiver accepts everything.
pub async fn open(port: u16, book: &Book, sound: bool) -> Receiver {
    let book = book.clone();
    let number = AtomicUsize::new(0);
    Receiver::start_on(port, move |message| {
        let write = || book.lock().unwrap().push(read(message));
        match number.fetch_add(1, Ordering::Relaxed) % 400 {
            70 | 170 | 270 | 370 if !sound => Behaviour::status(500),
            250 if !sound => Behaviour::NEVER_ANSWER,
            // It has recorded the message, and reports a failure.
            20 | 120 | 220 | 320 if !sound => {
                write();
                Behaviour::status(500)
            }
            50 if !sound => {
                write();
                Behaviour::NEVER_ANSWER
            }
            _ => {
                write();
                Behaviour::status(200)
            }
        }
    })
    .await
}

/// Reads a message, verified as receivers do.
fn read(message: &Received) -> Result<Written, String> {
    let verified = Webhook::new(SECRET)
        .unwrap()
        .verify(message.body.as_bytes(), &message.headers);
    verified.map_err(|mistake| mistake.to_string())?;
    let body = message.json();
    let users = [&body["data"]["user_id"], &body["data"]["from"]];
    Ok(Written {
        id: message.header("webhook-id").parse().unwrap(),
        kind: message.kind(),
        users: users
            .into_iter()
            .filter_map(Value::as_str)
            .map(|user| user.parse().unwrap())
            .collect(),
    })
}
