//! Deletion of expired rows, in batches small enough to hold no lock for long. A batch begins where the one before ended: what
//! that deleted stays in the index for as long as anybody's snapshot, such as that of a dump, is older.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;

/// The number of rows that were deleted, and the time of the last of them.
pub type Batch = (usize, Option<OffsetDateTime>);

/// Deletes those of the next `step` sessions after `after` that expired a week ago. Returns their number, and the last
/// session read. In that week, a refused refresh can say that the session expired. It walks the primary key: each refresh
/// would have to write an index on the expiry time.
///
/// # Errors
/// See [`Error`].
pub async fn sessions(pool: &PgPool, after: Uuid, step: i64) -> Result<(usize, Option<Uuid>), Error> {
    let row = sqlx::query!(
        r#"WITH step AS MATERIALIZED (
               SELECT id, expires_at FROM sessions WHERE id > $1 ORDER BY id LIMIT $2
           ),
           deleted AS (
               DELETE FROM sessions
               WHERE id IN (SELECT id FROM step WHERE expires_at <= now() - interval '7 days')
                     AND expires_at <= now() - interval '7 days'
               RETURNING id
           )
           SELECT (SELECT count(*) FROM deleted) AS "deleted!", (SELECT id FROM step ORDER BY id DESC LIMIT 1) AS last"#,
        after,
        step,
    )
    .fetch_one(pool)
    .await?;
    Ok((usize::try_from(row.deleted).unwrap_or(usize::MAX), row.last))
}

/// Deletes the sessions beyond `limit` of identities, ended and expired ones first, then the oldest. It reads `step` sessions of
/// the identities after `after`. Returns the number deleted, and the last identity that was read completely.
///
/// # Errors
/// See [`Error`].
pub async fn surplus_sessions(
    pool: &PgPool,
    after: Uuid,
    limit: u32,
    step: i64,
) -> Result<(usize, Option<Uuid>), Error> {
    // The next step begins with an identity that this one cuts off, unless a single one fills the step.
    let row = sqlx::query!(
        r#"WITH step AS MATERIALIZED (
               SELECT identity_id, count(*) AS sessions
               FROM (SELECT identity_id FROM sessions WHERE identity_id > $1 ORDER BY identity_id LIMIT $2) AS next
               GROUP BY identity_id
           ),
           whole AS MATERIALIZED (
               SELECT identity_id, sessions FROM step
               WHERE (SELECT sum(sessions) FROM step) < $2
                     OR (SELECT count(*) FROM step) = 1
                     OR identity_id < (SELECT identity_id FROM step ORDER BY identity_id DESC LIMIT 1)
           ),
           deleted AS (
               DELETE FROM sessions
               WHERE id IN (
                   SELECT surplus.id FROM whole w CROSS JOIN LATERAL (
                       SELECT s.id FROM sessions s WHERE s.identity_id = w.identity_id
                       ORDER BY s.ended_at IS NOT NULL OR s.expires_at <= now(), s.id DESC OFFSET $3
                   ) AS surplus
                   WHERE w.sessions > $3
               )
               RETURNING id
           )
           SELECT (SELECT count(*) FROM deleted) AS "deleted!",
                  (SELECT identity_id FROM whole ORDER BY identity_id DESC LIMIT 1) AS last"#,
        after,
        step,
        i64::from(limit),
    )
    .fetch_one(pool)
    .await?;
    Ok((usize::try_from(row.deleted).unwrap_or(usize::MAX), row.last))
}

/// Deletes the staff sessions that `admin::sign_in::store::by_session` treats as expired, and returns their number.
///
/// # Errors
/// See [`Error`].
pub async fn staff_sessions(pool: &PgPool, batch: i64) -> Result<usize, Error> {
    let deleted = sqlx::query!(
        "DELETE FROM staff_sessions WHERE hash IN (
             SELECT hash FROM staff_sessions
             WHERE last_used_at <= now() - interval '30 minutes' OR created_at <= now() - interval '12 hours'
             LIMIT $1 FOR UPDATE SKIP LOCKED
         )",
        batch,
    )
    .execute(pool)
    .await?;
    Ok(usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX))
}

/// Deletes rows of a table from a time on, the oldest first, and returns their number and the time of the last one.
macro_rules! delete_by_time {
    ($sql:literal, $pool:expr, $($parameter:expr),+) => {{
        let times = sqlx::query_scalar!($sql, $($parameter),+).fetch_all($pool).await?;
        Ok((times.len(), times.into_iter().max()))
    }};
}

/// Deletes the ids of messages from providers that arrived 90 days ago, from `from` on. Returns their number, and the time of
/// the last one. A message of that age is refused, so none is applied twice.
///
/// # Errors
/// See [`Error`].
pub async fn provider_events(pool: &PgPool, from: OffsetDateTime, batch: i64) -> Result<Batch, Error> {
    delete_by_time!(
        "DELETE FROM provider_events WHERE (provider, message_id) IN (
             SELECT provider, message_id FROM provider_events
             WHERE received_at >= $1 AND received_at <= now() - interval '90 days'
             ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED
         ) RETURNING received_at",
        pool,
        from,
        batch
    )
}

/// Deletes requests of providers to delete data that arrived 90 days ago, from `from` on. Returns their number, and the time
/// of the last one.
///
/// # Errors
/// See [`Error`].
pub async fn deletion_requests(pool: &PgPool, from: OffsetDateTime, batch: i64) -> Result<Batch, Error> {
    delete_by_time!(
        "DELETE FROM deletion_requests WHERE code IN (
             SELECT code FROM deletion_requests
             WHERE received_at >= $1 AND received_at <= now() - interval '90 days'
             ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED
         ) RETURNING received_at",
        pool,
        from,
        batch
    )
}

/// Deletes the hashes of identities that were deleted 25 hours ago, from `from` on. Returns their number, and the time of the
/// last one. Tokens from before are older than any provider's `max_token_age`, which is a day at most, even if the clocks
/// differ.
///
/// # Errors
/// See [`Error`].
pub async fn deleted_identities(pool: &PgPool, from: OffsetDateTime, batch: i64) -> Result<Batch, Error> {
    delete_by_time!(
        "DELETE FROM deleted_identities WHERE hash IN (
             SELECT hash FROM deleted_identities
             WHERE deleted_at >= $1 AND deleted_at <= now() - interval '25 hours'
             ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED
         ) RETURNING deleted_at",
        pool,
        from,
        batch
    )
}

/// Deletes sign-ins of staff that were begun ten minutes ago and not completed, from `from` on. Returns their number, and the
/// time of the last one.
///
/// # Errors
/// See [`Error`].
pub async fn staff_sign_ins(pool: &PgPool, from: OffsetDateTime, batch: i64) -> Result<Batch, Error> {
    delete_by_time!(
        "DELETE FROM staff_sign_ins WHERE state_hash IN (
             SELECT state_hash FROM staff_sign_ins
             WHERE created_at >= $1 AND created_at < now() - interval '10 minutes'
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
         ) RETURNING created_at",
        pool,
        from,
        batch
    )
}

/// Deletes those of the next `batch` events after `after` that are older than that many days. Returns their number, and the
/// last one.
///
/// # Errors
/// See [`Error`].
pub async fn events(
    pool: &PgPool,
    after: Uuid,
    days: u32,
    batch: i64,
) -> Result<(usize, Option<Uuid>), Error> {
    // Ids grow with time, so the oldest are at the beginning of the primary key's index.
    let deleted = sqlx::query_scalar!(
        "DELETE FROM events WHERE id IN (
             SELECT id FROM (SELECT id, created_at FROM events WHERE id > $1 ORDER BY id LIMIT $3) AS oldest
             WHERE created_at < now() - $2::integer * interval '1 day'
         ) RETURNING id",
        after,
        i32::try_from(days).unwrap_or(i32::MAX),
        batch,
    );
    let deleted = deleted.fetch_all(pool).await?;
    Ok((deleted.len(), deleted.into_iter().max()))
}
