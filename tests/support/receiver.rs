//! A receiver of webhooks over real HTTP, which behaves as a test chooses.

use hyper::HeaderMap;
use serde_json::Value;
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;
use vestibule::webhooks::message;
use vestibule::webhooks::store::Claimed;

use super::process::eventually;
use super::provider::{Behaviour, Provider, Recorded};

/// The tests' secret, as settings contain it.
pub const SECRET: &str = "whsec_dGhlIHdlYmhvb2sgc2VjcmV0IG9mIHRoZSB0ZXN0cw==";

#[derive(Debug, Clone)]
pub struct Received {
    /// The method and the path.
    pub line: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Received {
    fn of(request: &Recorded) -> Self {
        let line = format!("{} {}", request.method, request.path);
        let body = String::from_utf8(request.body.clone()).unwrap();
        Self {
            line,
            headers: request.headers.clone(),
            body,
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// The user that the message is about.
    pub fn user(&self) -> String {
        self.json()["data"]["user_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Returns the messages in the queue, in order, as they would be sent.
pub async fn queued(pool: &PgPool) -> Vec<Value> {
    let rows: Vec<(String, Uuid, Option<Uuid>, OffsetDateTime, String)> = all!(
        pool,
        "SELECT type, user_id, other_id, created_at, facts::text FROM webhook_messages ORDER BY id"
    );
    rows.into_iter()
        .map(|(kind, user_id, other_id, created_at, facts)| {
            body(kind, user_id, other_id, created_at, facts)
        })
        .collect()
}

/// Builds the body of a message.
pub fn body(
    kind: String,
    user_id: Uuid,
    other_id: Option<Uuid>,
    created_at: OffsetDateTime,
    facts: String,
) -> Value {
    let claimed = Claimed {
        id: 0,
        message_id: Uuid::nil(),
        kind,
        user_id,
        other_id,
        created_at,
        facts,
        attempts: 0,
        failures: 0,
    };
    serde_json::from_str(&message::body(&claimed).unwrap()).unwrap()
}

pub struct Receiver {
    pub url: String,
    pub server: Provider,
}

impl Receiver {
    /// Starts a receiver that accepts everything.
    pub async fn start() -> Self {
        Self::start_with(|_| Behaviour::status(204)).await
    }

    pub async fn start_with(behaviour: impl Fn(&Received) -> Behaviour + Send + 'static) -> Self {
        Self::start_on(0, behaviour).await
    }

    pub async fn start_on(
        port: u16,
        behaviour: impl Fn(&Received) -> Behaviour + Send + 'static,
    ) -> Self {
        let server = Provider::start_on(port).await;
        let receiver = Self {
            url: format!("{}/hooks", server.url()),
            server,
        };
        receiver.behave(behaviour);
        receiver
    }

    /// Changes its behaviour.
    pub fn behave(&self, behaviour: impl Fn(&Received) -> Behaviour + Send + 'static) {
        self.server
            .behave_by(move |request| behaviour(&Received::of(request)));
    }

    pub fn received(&self) -> Vec<Received> {
        self.server.requests().iter().map(Received::of).collect()
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
