//! The guard of the routes for providers' messages: the sender's rate limit.
//!
//! A provider sends bursts of genuine messages from few IP addresses, and attackers can send forged
//! ones. So an IP address that has sent a genuine message may send as many requests as an API key.
//! Any other address may send as many as it may send sign-ins. Each limit has its own counter, so
//! neither takes anything from the sign-ins behind the same address.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocket::request::Request;

use super::client_address;
use super::rate_limited::{ProviderEvents, UnknownSender, admit_address};
use super::shared::{request_guard, state};
use crate::web::http::rate_limit::Key;
use crate::web::{ErrorCode, Problem, errors};

/// The time for which a sender stays known after its latest genuine message.
const KNOWN_FOR: Duration = Duration::from_hours(24);
/// The number of senders that are known at once. Providers have some dozens.
const MOST: usize = 1024;

/// The senders of genuine messages, and the times of the latest ones. Each instance learns its own.
#[derive(Debug, Default)]
pub struct KnownSenders(Mutex<HashMap<Key, Instant>>);

impl KnownSenders {
    fn knows(&self, sender: Key) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&sender)
            .is_some_and(|latest| latest.elapsed() < KNOWN_FOR)
    }

    fn learn(&self, sender: Key) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, latest| latest.elapsed() < KNOWN_FOR);
        }
        // The owner of a Facebook account can obtain genuine messages about it, and send them from
        // any address.
        if known.len() < MOST || known.contains_key(&sender) {
            known.insert(sender, Instant::now());
        }
    }
}

/// A message in the name of a provider, whose sender is within its limit.
///
/// - **Succeeds** within the limit, and always when limits are switched off.
/// - **Fails** beyond it with `rate_limited`.
#[derive(Debug)]
pub struct EventSender<'r> {
    known: &'r KnownSenders,
    key: Key,
}

impl<'r> EventSender<'r> {
    fn of(request: &'r Request<'_>) -> Result<Self, Problem> {
        let known: &KnownSenders = state(request)?;
        let key = Key::address(client_address::of(request));
        if known.knows(key) {
            admit_address::<ProviderEvents>(request)?;
        } else {
            admit_address::<UnknownSender>(request)?;
        }
        Ok(Self { known, key })
    }

    /// Notes that the message is genuine.
    pub fn is_genuine(&self) {
        self.known.learn(self.key);
    }
}

errors!(EventSender<'_>: [ErrorCode::RateLimited].into_iter());

request_guard!(EventSender<'r>, |request| Self::of(request));
