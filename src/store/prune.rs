//! Deleting what has served its time, in batches small enough to hold no lock for long.

use sqlx::PgPool;

use super::Error;

/// Deletes expired refresh tokens, and the sessions that have none left; answers how many tokens. It is one
/// statement, so that no session is left behind without a token that would lead the pruner to it.
///
/// # Errors
/// See [`Error`].
pub async fn refresh_tokens(pool: &PgPool, batch: i64) -> Result<usize, Error> {
    let deleted = sqlx::query_scalar!(
        r#"WITH expired AS (
               SELECT hash, session_id FROM refresh_tokens WHERE expires_at < now()
               ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
           ),
           deleted AS (
               DELETE FROM refresh_tokens t USING expired e WHERE t.hash = e.hash
           ),
           ended AS (
               DELETE FROM sessions s WHERE s.id IN (SELECT session_id FROM expired)
               AND NOT EXISTS (
                   SELECT FROM refresh_tokens t
                   WHERE t.session_id = s.id AND t.hash NOT IN (SELECT hash FROM expired)
               )
           )
           SELECT count(*) AS "count!" FROM expired"#,
        batch,
    );
    Ok(usize::try_from(deleted.fetch_one(pool).await?).unwrap_or(usize::MAX))
}

/// Deletes sessions of staff that are over, as `staff::by_session` sees it; answers how many.
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

/// Deletes events older than that many days; answers how many.
///
/// # Errors
/// See [`Error`].
pub async fn events(pool: &PgPool, days: u32, batch: i64) -> Result<usize, Error> {
    // Ids grow with time, so the oldest are at the beginning of the primary key's index.
    let deleted = sqlx::query!(
        "DELETE FROM events WHERE id IN (
             SELECT id FROM (SELECT id, created_at FROM events ORDER BY id LIMIT $2) AS oldest
             WHERE created_at < now() - $1::integer * interval '1 day'
         )",
        i32::try_from(days).unwrap_or(i32::MAX),
        batch,
    )
    .execute(pool)
    .await?;
    Ok(usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX))
}
