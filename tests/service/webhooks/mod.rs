//! Webhook messages: the queue and the delivery.

mod delivery;
mod messages;
mod operators;
mod queue;
mod receivers;

use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::receiver::{Receiver, SECRET};

const WAITING: &str = "SELECT count(*) FROM webhook_messages";

/// Starts a service with these receivers.
async fn with_receivers(receivers: &[(&str, &Receiver)]) -> App {
    App::start_with(|figment| {
        receivers.iter().fold(figment, |figment, (name, receiver)| {
            figment.merge((format!("webhooks.{name}"), settings(receiver)))
        })
    })
    .await
}

/// Returns the settings of a receiver.
fn settings(receiver: &Receiver) -> Value {
    json!({ "url": receiver.url, "secret": SECRET })
}

/// Starts a service whose receiver `shop` has these settings.
async fn with_shop(settings: Value) -> App {
    App::start_with(|figment| figment.merge(("webhooks.shop", settings))).await
}

/// Returns the receiver `shop` for the program's environment.
fn environment(url: &str) -> String {
    format!("{{shop={{url=\"{url}\",secret=\"{SECRET}\"}}}}")
}

async fn emptied(database: &Database) {
    database.until(WAITING, 0).await;
}

/// Writes an event without a reason and a detail.
async fn change(pool: &PgPool, kind: &str, user: Uuid) -> Uuid {
    event(pool, kind, user, None, &Value::Null).await
}

/// Writes an event as statements do.
async fn event(
    pool: &PgPool,
    kind: &str,
    user: Uuid,
    reason: Option<&str>,
    detail: &Value,
) -> Uuid {
    let id = Uuid::now_v7();
    run!(
        pool,
        "INSERT INTO events (id, kind, user_id, session_id, reason, provider, ip, actor, detail)
         VALUES ($1, $2, $3, $4, $5, 'idp', '192.0.2.7', 'staff@example.com', $6::text::jsonb)",
        id,
        kind,
        user,
        SESSION,
        reason,
        detail.to_string()
    );
    id
}

const SESSION: Uuid = Uuid::from_u128(0x5e55);

/// Makes the next attempts due, as if the time had passed.
async fn pass(pool: &PgPool) {
    // Messages without an attempt wait for one of these.
    run!(
        pool,
        "UPDATE webhook_messages SET next_attempt_at = now() WHERE parked_at IS NULL AND attempts > 0"
    );
}
