//! The queue of messages, and the receivers' subscriptions.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::config::Webhook;
use crate::database::{Database, Error};
use crate::domain::{Author, Role};
use crate::events::SqlAuthor;
pub use crate::queue::Summary;

/// A message that this instance has to send.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The id in the queue.
    pub id: i64,
    /// The id for the receiver, which is the event's.
    pub message_id: Uuid,
    pub kind: String,
    pub user_id: Uuid,
    /// The second user of a merge or a move.
    pub other_id: Option<Uuid>,
    /// The time of the change, which increases with each message about a user.
    pub created_at: OffsetDateTime,
    /// What has changed, as JSON.
    pub facts: String,
    /// The attempts, including the attempt that is due.
    pub attempts: i16,
    /// The attempts that were answered and failed.
    pub failures: i16,
}

/// Stores the receivers' subscriptions. No further messages are queued for receivers that are no
/// longer configured; messages that they have not got yet stay.
pub async fn subscribe(database: &Database, webhooks: &[&Webhook]) -> Result<Vec<String>, Error> {
    let names: Vec<_> = webhooks
        .iter()
        .map(|webhook| webhook.name.clone())
        .collect();
    let types = |webhook: &&Webhook| {
        webhook
            .types
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let ended = sqlx::query_scalar!(
        "WITH wanted AS (
             SELECT name, string_to_array(types, ' ') AS events FROM unnest($1::text[], $2::text[]) AS t (name, types)
         ),
         ended AS (
             UPDATE webhooks SET events = '{}' WHERE events <> '{}' AND name NOT IN (SELECT name FROM wanted)
             RETURNING name
         ),
         written AS (
             INSERT INTO webhooks (name, events) SELECT name, events FROM wanted
             ON CONFLICT ON CONSTRAINT webhooks_pkey DO UPDATE SET events = excluded.events
             WHERE webhooks.events <> excluded.events
         )
         SELECT name FROM ended",
        &names,
        &webhooks.iter().map(types).collect::<Vec<_>>(),
    );
    Ok(ended.fetch_all(database).await?)
}

/// Looks at the next `step` messages of a webhook after `after` that wait for earlier ones of their
/// users, and makes messages due whose earlier ones are gone: they were pruned while the webhook
/// was not configured. Returns the last message that it looked at.
pub async fn wake(
    database: &Database,
    webhook: &str,
    after: i64,
    step: i64,
) -> Result<Option<i64>, Error> {
    let last = sqlx::query_scalar!(
        "WITH step AS MATERIALIZED (
             SELECT id, user_id, other_id FROM webhook_messages
             WHERE webhook = $1 AND parked_at IS NULL AND next_attempt_at = 'infinity' AND id > $2
             ORDER BY id LIMIT $3
         ),
         woken AS (
             UPDATE webhook_messages m SET next_attempt_at = now() FROM step s
             WHERE m.id = s.id AND m.next_attempt_at = 'infinity'
                   AND least(first_webhook_message($1, s.user_id), first_webhook_message($1, s.other_id)) = s.id
         )
         SELECT max(id) FROM step",
        webhook,
        after,
        step,
    );
    Ok(last.fetch_one(database).await?)
}

/// Takes up to `limit` due messages of a webhook, for `lease` seconds. A message is due if its time
/// has come and no earlier message of the same user waits. It looks at messages that are due since
/// `since`, or at all due messages without it. If the connection is lost, messages may have been
/// taken until their lease ends.
pub async fn claim(
    database: &Database,
    webhook: &str,
    since: Option<OffsetDateTime>,
    limit: usize,
    lease: u32,
) -> Result<Vec<Claimed>, Error> {
    let claimed = sqlx::query_as!(
        Claimed,
        r#"SELECT id AS "id!", message_id AS "message_id!", type AS "kind!", user_id AS "user_id!", other_id,
                  created_at AS "created_at!", facts::text AS "facts!", attempts AS "attempts!", failures AS "failures!"
           FROM claim_webhook_messages($1, $2, $3, coalesce($4::timestamptz, '-infinity'))"#,
        webhook,
        i64::try_from(limit).unwrap_or(i64::MAX),
        i32::try_from(lease).unwrap_or(i32::MAX),
        since,
    );
    Ok(claimed.fetch_all(database).await?)
}

#[derive(Debug)]
pub struct Ended {
    pub message: Claimed,
    /// The failure, or `None` after a delivery.
    pub failure: Option<String>,
    /// The seconds to the next attempt, or `None` to park it.
    pub pause: Option<f64>,
}

/// Records the ends of attempts, all or none.
pub async fn settle(database: &Database, ended: &[Ended]) -> Result<(), Error> {
    let settled = sqlx::query!(
        "SELECT FROM settle_webhook_messages($1, $2, $3, $4)",
        &ended.iter().map(|one| one.message.id).collect::<Vec<_>>(),
        &ended
            .iter()
            .map(|one| one.message.attempts)
            .collect::<Vec<_>>(),
        &ended
            .iter()
            .map(|one| one.failure.as_deref())
            .collect::<Vec<_>>() as &[Option<&str>],
        &ended.iter().map(|one| one.pause).collect::<Vec<_>>() as &[Option<f64>],
    );
    settled.execute(database).await?;
    Ok(())
}

/// Returns the state of each webhook that is configured or has messages left. `known` are the
/// previous states: messages that were due before a state's `since` are not read again.
pub async fn summaries(database: &Database, known: &[Summary]) -> Result<Vec<Summary>, Error> {
    let summaries = sqlx::query_as!(
        Summary,
        r#"SELECT w.name, coalesce(queue.waiting, 0) AS "waiting!", queue.oldest_at,
                  (SELECT count(*) FROM (SELECT FROM webhook_messages m
                                         WHERE m.webhook = w.name AND m.parked_at IS NOT NULL LIMIT $1) AS capped) AS "parked!",
                  coalesce((SELECT m.failure FROM webhook_messages m
                            WHERE m.webhook = w.name AND m.parked_at IS NULL AND m.failure IS NOT NULL
                                  AND m.next_attempt_at >= known.since
                            ORDER BY m.next_attempt_at LIMIT 1),
                           (SELECT m.failure FROM webhook_messages m
                            WHERE m.webhook = w.name AND m.parked_at IS NOT NULL
                            ORDER BY m.parked_at DESC LIMIT 1)) AS failure,
                  least(now() - interval '30 seconds', queue.first_at) AS "since!"
           FROM webhooks w
           CROSS JOIN LATERAL (
               SELECT coalesce(max(since), '-infinity') AS since
               FROM unnest($2::text[], $3::timestamptz[]) AS known (name, since) WHERE known.name = w.name
           ) AS known
           LEFT JOIN LATERAL (
               SELECT count(*) AS waiting, min(created_at) AS oldest_at, min(next_attempt_at) AS first_at
               FROM (SELECT created_at, next_attempt_at FROM webhook_messages m
                     WHERE m.webhook = w.name AND m.parked_at IS NULL AND m.next_attempt_at >= known.since
                     ORDER BY m.next_attempt_at LIMIT $1) AS capped
           ) AS queue ON true
           WHERE w.events <> '{}' OR EXISTS (SELECT FROM webhook_messages m WHERE m.webhook = w.name)
           ORDER BY w.name"#,
        Summary::COUNTED,
        &known
            .iter()
            .map(|summary| summary.name.clone())
            .collect::<Vec<_>>(),
        &known
            .iter()
            .map(|summary| summary.since)
            .collect::<Vec<_>>() as &[Option<OffsetDateTime>],
    );
    Ok(summaries.fetch_all(database).await?)
}

/// A message that was not accepted yet.
#[derive(Debug, Clone, Serialize)]
pub struct Unaccepted {
    /// The id in the queue.
    pub id: i64,
    /// The id for the receiver.
    pub message_id: Uuid,
    pub kind: String,
    pub user_id: Uuid,
    pub attempts: i16,
    /// The time of the next attempt, or `None` if it is parked or waits for an earlier message of
    /// the same user.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
    pub parked: bool,
    pub failure: Option<String>,
}

/// Messages that were not accepted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    /// Messages that were answered and failed, including parked ones.
    Failed,
    Parked,
}

pub async fn unaccepted(
    database: &Database,
    webhook: &str,
    which: Which,
    after: i64,
    limit: i64,
) -> Result<Vec<Unaccepted>, Error> {
    let messages = sqlx::query_as!(
        Unaccepted,
        r#"SELECT id, message_id, type AS kind, user_id, attempts,
                  CASE WHEN parked_at IS NULL THEN nullif(next_attempt_at, 'infinity') END AS next_attempt_at,
                  parked_at IS NOT NULL AS "parked!", failure
           FROM webhook_messages
           WHERE webhook = $1 AND id > $2 AND (failure IS NOT NULL OR NOT $3) AND (parked_at IS NOT NULL OR NOT $4)
           ORDER BY id LIMIT $5"#,
        webhook,
        after,
        which == Which::Failed,
        which == Which::Parked,
        limit,
    );
    Ok(messages.fetch_all(database).await?)
}

/// Returns true if instances have started with a webhook of that name, or it has messages left.
pub async fn exists(database: &Database, webhook: &str) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM webhooks WHERE name = $1) AS "found!""#,
        webhook
    );
    Ok(found.fetch_one(database).await?)
}

/// Records who sends a message of a webhook, or all messages, again. Returns `false`, and records
/// nothing, if the author is no longer an admin.
pub(super) async fn record_replay(
    database: &Database,
    webhook: &str,
    only: Option<Uuid>,
    by: Author<'_>,
) -> Result<bool, Error> {
    let recorded = sqlx::query!(
        "INSERT INTO events
         SELECT e.* FROM event_row($1, 'webhook_replayed', detail => jsonb_strip_nulls(
             jsonb_build_object('webhook', $2::text, 'message', $3::uuid))) AS e
         WHERE author_allowed($1)",
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
        webhook,
        only,
    )
    .execute(database)
    .await?;
    Ok(recorded.rows_affected() > 0)
}

/// Makes up to `batch` messages of a webhook after `after` due now, `only` one or any: messages
/// that wait for a retry and, if `parked`, parked messages, which get all their attempts again.
/// Returns their number, and the last one. It leaves messages that are being sent or wait behind
/// another message of their user: these are due once the other is done.
pub async fn replay(
    database: &Database,
    webhook: &str,
    only: Option<Uuid>,
    parked: bool,
    after: i64,
    batch: i64,
) -> Result<(usize, Option<i64>), Error> {
    let replayed = sqlx::query_scalar!(
        "UPDATE webhook_messages
         SET next_attempt_at = now(), parked_at = NULL, failures = CASE WHEN parked_at IS NULL THEN failures ELSE 0 END
         WHERE id IN (
             SELECT id FROM webhook_messages
             WHERE webhook = $1 AND ($2::uuid IS NULL OR message_id = $2) AND id > $3
                   AND (($5 AND parked_at IS NOT NULL) OR (
                       next_attempt_at > now() + interval '1 minute'
                       AND least(first_webhook_message(webhook, user_id), first_webhook_message(webhook, other_id)) = id))
             ORDER BY id LIMIT $4
             FOR UPDATE SKIP LOCKED
         )
         RETURNING id",
        webhook,
        only,
        after,
        batch,
        parked,
    );
    let replayed = replayed.fetch_all(database).await?;
    Ok((replayed.len(), replayed.into_iter().max()))
}

/// Deletes up to `batch` messages that will not be sent again, and returns their number. These are
/// parked messages, and messages of webhooks that are not configured: they are deleted after a
/// month, or at once if their user no longer exists. Messages that a user was deleted or merged are
/// worth keeping for the month, but without data of a user who no longer exists.
pub async fn prune(database: &Database, batch: i64) -> Result<usize, Error> {
    sqlx::query!(
        r"UPDATE webhook_messages m SET facts = facts - 'user'
          WHERE m.type = 'user.merged' AND m.facts ? 'user'
                AND (m.parked_at IS NOT NULL OR m.webhook IN (SELECT name FROM webhooks WHERE events = '{}'))
                AND NOT EXISTS (SELECT FROM users u WHERE u.id = m.user_id)",
    )
    .execute(database)
    .await?;
    let deleted = sqlx::query!(
        "WITH emptied AS (
             DELETE FROM webhooks w
             WHERE w.events = '{}' AND NOT EXISTS (SELECT FROM webhook_messages m WHERE m.webhook = w.name)
         )
         DELETE FROM webhook_messages WHERE id IN (
             SELECT id FROM webhook_messages m
             WHERE m.parked_at IS NOT NULL
                   AND (m.parked_at < now() - interval '30 days'
                        OR (m.type NOT IN ('user.deleted', 'user.merged') AND NOT EXISTS (SELECT FROM users u WHERE u.id = m.user_id)))
             UNION ALL
             SELECT m.id FROM webhooks w JOIN webhook_messages m ON m.webhook = w.name AND m.parked_at IS NULL
             WHERE w.events = '{}'
                   AND (m.created_at < now() - interval '30 days'
                        OR (m.type NOT IN ('user.deleted', 'user.merged') AND NOT EXISTS (SELECT FROM users u WHERE u.id = m.user_id)))
             LIMIT $1
         )",
        batch,
    )
    .execute(database)
    .await?;
    Ok(usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX))
}
