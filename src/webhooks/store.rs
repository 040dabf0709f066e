//! The queue of messages, and who wants them.

pub use sqlx::PgPool;
use uuid::Uuid;

use crate::config::Webhook;
use crate::store::Error;

/// A message that this instance has to send.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The id in the queue.
    pub id: i64,
    /// The id for the receiver, which is the event's.
    pub message_id: Uuid,
    /// The type of message.
    pub kind: String,
    /// The body.
    pub payload: String,
    /// The attempts, including the one that is due.
    pub attempts: i16,
}

/// Writes which messages the receivers want. Nothing further is queued for those that are no longer configured; what
/// they have not got yet stays.
///
/// # Errors
/// See [`Error`].
pub async fn subscribe(pool: &PgPool, webhooks: &[&Webhook]) -> Result<(), Error> {
    let names: Vec<_> = webhooks.iter().map(|webhook| webhook.name.clone()).collect();
    let types = |webhook: &&Webhook| webhook.types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    sqlx::query!(
        "WITH wanted AS (
             SELECT name, string_to_array(types, ' ') AS events FROM unnest($1::text[], $2::text[]) AS t (name, types)
         ),
         ended AS (
             UPDATE webhooks SET events = '{}' WHERE events <> '{}' AND name NOT IN (SELECT name FROM wanted)
         )
         INSERT INTO webhooks (name, events) SELECT name, events FROM wanted
         ON CONFLICT ON CONSTRAINT webhooks_pkey DO UPDATE SET events = excluded.events
         WHERE webhooks.events <> excluded.events",
        &names,
        &webhooks.iter().map(types).collect::<Vec<_>>(),
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Takes up to `limit` due messages of a webhook, for `lease` seconds. A message is due if its time has come and no
/// earlier message of the same user waits.
///
/// # Errors
/// See [`Error`]. If the connection was lost, messages may have been taken until their lease ends.
pub async fn claim(pool: &PgPool, webhook: &str, limit: usize, lease: u32) -> Result<Vec<Claimed>, Error> {
    // `OFFSET` keeps each subquery a look-up in an index, for the few messages that are due.
    let claimed = sqlx::query_as!(
        Claimed,
        r#"WITH due AS MATERIALIZED (
               SELECT m.id FROM webhook_messages m
               WHERE m.webhook = $1 AND m.parked_at IS NULL AND m.next_attempt_at <= now()
                     AND NOT EXISTS (SELECT FROM webhook_messages e
                                     WHERE e.user_id = m.user_id AND e.webhook = $1 AND e.parked_at IS NULL AND e.id < m.id
                                     OFFSET 0)
                     AND NOT EXISTS (SELECT FROM webhook_messages e
                                     WHERE e.other_id = m.user_id AND e.webhook = $1 AND e.parked_at IS NULL AND e.id < m.id
                                     OFFSET 0)
                     AND (m.other_id IS NULL
                          OR NOT EXISTS (SELECT FROM webhook_messages e
                                         WHERE m.other_id IN (e.user_id, e.other_id) AND e.webhook = $1
                                               AND e.parked_at IS NULL AND e.id < m.id
                                         OFFSET 0))
               ORDER BY m.next_attempt_at, m.id LIMIT $2
               FOR UPDATE SKIP LOCKED
           )
           UPDATE webhook_messages m
           SET attempts = m.attempts + 1, next_attempt_at = now() + $3::integer * interval '1 second'
           FROM due WHERE m.id = due.id
           RETURNING m.id, m.message_id, m.type AS kind, m.payload, m.attempts"#,
        webhook,
        i64::try_from(limit).unwrap_or(i64::MAX),
        i32::try_from(lease).unwrap_or(i32::MAX),
    )
    .fetch_all(pool)
    .await?;
    Ok(claimed)
}

/// Records the end of an attempt. `failure` is `None` after a delivery, and `pause` is `None` for a message to park.
/// Returns `false` if another instance has taken the message over.
///
/// # Errors
/// See [`Error`].
pub async fn settle(
    pool: &PgPool,
    message: &Claimed,
    failure: Option<&str>,
    pause: Option<f64>,
) -> Result<bool, Error> {
    let settled =
        sqlx::query_file_scalar!("src/webhooks/settle.sql", message.id, message.attempts, failure, pause);
    Ok(settled.fetch_one(pool).await?)
}
