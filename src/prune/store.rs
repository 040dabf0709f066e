//! Deletion of expired rows, in batches small enough to hold no lock for long. A batch begins where
//! the one before ended: deleted rows stay in the index as long as any snapshot, such as a dump's,
//! is older than their deletion. For sessions, the most frequent rows that are deleted one by one,
//! the place is in the database (`cursors`).

use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{Database, Error};

/// The number of rows that were deleted, and the time of the last of them.
pub type Batch = (usize, Option<OffsetDateTime>);
/// The number of rows that were deleted, and `true` if there may be more. It is `false` at the end
/// of a walk, and while another instance takes a step of it.
pub type Step = (usize, bool);

/// A walk over sessions of one age. Sessions are read at three ages only, since most sessions in
/// between are in use: a walk over all sessions would read many for each that it deletes, and each
/// refresh would write an index on their expiry.
#[derive(Debug, Clone, Copy)]
pub enum Walk {
    /// At the age at which a session not used after its first day has been expired for a week.
    Unused,
    /// At twice that age.
    Used,
    /// At the age at which any session has been expired for a week, however much it was used. No
    /// later walk follows. So this walk waits for a session that is still in use, which is from
    /// before a change of the settings.
    Oldest,
}

/// Takes the next step of a walk: reads at most `step` of the sessions whose ids say that they were
/// opened `age` seconds ago, and deletes the sessions that expired at least a week ago. In that
/// week, a refused refresh can say that the session expired.
pub async fn sessions(database: &Database, walk: Walk, age: u32, step: i64) -> Result<Step, Error> {
    let (walk, waits) = match walk {
        Walk::Unused => ("unused_sessions", false),
        Walk::Used => ("used_sessions", false),
        Walk::Oldest => ("oldest_sessions", true),
    };
    // Rows are deleted by their address (`ctid`), so that no row is read twice.
    let done = sqlx::query!(
        r#"WITH place AS MATERIALIZED (
               SELECT place FROM cursors WHERE walk = $1 FOR UPDATE SKIP LOCKED
           ),
           step AS MATERIALIZED (
               SELECT s.* FROM place p CROSS JOIN LATERAL (
                   SELECT id, ctid AS address, expires_at <= now() - interval '7 days' AS expired FROM sessions
                   WHERE id > p.place AND id < first_id(now() - make_interval(secs => $2))
                   ORDER BY id LIMIT $3
               ) AS s
           ),
           deleted AS (
               DELETE FROM sessions
               WHERE ctid = ANY (ARRAY(SELECT address FROM step WHERE expired)) AND expires_at <= now() - interval '7 days'
               RETURNING id, identity_id, rotated_at
           ),
           last AS (
               SELECT i.user_id, max(d.rotated_at)::date AS day FROM deleted d JOIN identities i ON i.id = d.identity_id
               GROUP BY i.user_id
           ),
           -- Whatever ends sessions locks the user first, so this must not wait for a user.
           seen AS (
               UPDATE users u SET seen_noted_on = l.day
               FROM last l
               WHERE l.user_id = u.id AND u.id IN (
                   SELECT u.id FROM last l JOIN users u ON u.id = l.user_id
                   WHERE u.seen_noted_on < l.day
                   FOR NO KEY UPDATE OF u SKIP LOCKED
               )
           ),
           moved AS (
               UPDATE cursors SET place = read.id
               FROM (
                   SELECT id FROM step
                   WHERE NOT $4 OR id < coalesce((SELECT id FROM step WHERE id NOT IN (SELECT id FROM deleted)
                                                  ORDER BY id LIMIT 1),
                                                 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                   ORDER BY id DESC LIMIT 1
               ) AS read
               WHERE walk = $1
               RETURNING walk
           )
           SELECT (SELECT count(*) FROM deleted) AS "deleted!", EXISTS (SELECT FROM moved) AS "more!""#,
        walk,
        f64::from(age),
        step,
        waits,
    );
    let done = done.fetch_one(database).await?;
    Ok((
        usize::try_from(done.deleted).unwrap_or(usize::MAX),
        done.more,
    ))
}

/// Takes the next step of a walk: reads at most `step` new sessions, and deletes their identities'
/// sessions beyond `limit`, first ended and expired sessions, then the least recently used ones. It
/// deletes at most `step`; if that is too few, the next step reads the same sessions. A session
/// that is committed behind the place is not read: the next session of its identity makes up for
/// that.
pub async fn surplus_sessions(database: &Database, limit: u32, step: i64) -> Result<Step, Error> {
    let done = sqlx::query!(
        r#"WITH place AS MATERIALIZED (
               SELECT place FROM cursors WHERE walk = 'new_sessions' FOR UPDATE SKIP LOCKED
           ),
           step AS MATERIALIZED (
               SELECT s.* FROM place p CROSS JOIN LATERAL (
                   SELECT id, identity_id FROM sessions WHERE id > p.place AND id < first_id(now()) ORDER BY id LIMIT $2
               ) AS s
           ),
           many AS MATERIALIZED (
               SELECT identity_id FROM (SELECT DISTINCT identity_id FROM step) AS i
               WHERE EXISTS (SELECT FROM sessions s WHERE s.identity_id = i.identity_id OFFSET $1)
           ),
           surplus AS MATERIALIZED (
               SELECT s.address FROM many m CROSS JOIN LATERAL (
                   SELECT ctid AS address FROM sessions
                   WHERE identity_id = m.identity_id
                   ORDER BY ended_at IS NOT NULL OR expires_at <= now(), rotated_at DESC, id DESC
                   OFFSET $1
               ) AS s
               LIMIT $2
           ),
           deleted AS (
               DELETE FROM sessions WHERE ctid = ANY (ARRAY(SELECT address FROM surplus)) RETURNING id
           ),
           moved AS (
               UPDATE cursors SET place = last.id FROM (SELECT id FROM step ORDER BY id DESC LIMIT 1) AS last
               WHERE walk = 'new_sessions' AND (SELECT count(*) FROM surplus) < $2
           )
           SELECT (SELECT count(*) FROM deleted) AS "deleted!", EXISTS (SELECT FROM step) AS "more!""#,
        i64::from(limit),
        step,
    );
    let done = done.fetch_one(database).await?;
    Ok((
        usize::try_from(done.deleted).unwrap_or(usize::MAX),
        done.more,
    ))
}

/// Deletes the staff sessions that `admin::sign_in::store::by_session` treats as expired, and
/// returns their number.
pub async fn staff_sessions(database: &Database, batch: i64) -> Result<usize, Error> {
    let deleted = sqlx::query!(
        "DELETE FROM staff_sessions WHERE hash IN (
             SELECT hash FROM staff_sessions
             WHERE last_used_at <= now() - interval '30 minutes' OR created_at <= now() - interval '12 hours'
             LIMIT $1 FOR UPDATE SKIP LOCKED
         )",
        batch,
    )
    .execute(database)
    .await?;
    Ok(usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX))
}

/// Defines the deletion of a table's rows of at least an age, the oldest first, from a given time
/// on. It returns the number of rows and the time of the last one.
macro_rules! delete_by_time {
    ($(#[$doc:meta])* $name:ident: $table:literal, $time:literal, $age:literal) => {
        $(#[$doc])*
        pub async fn $name(database: &Database, from: OffsetDateTime, batch: i64) -> Result<Batch, Error> {
            let times = sqlx::query_scalar!(
                "DELETE FROM " + $table + " WHERE ctid = ANY (ARRAY(
                     SELECT ctid FROM " + $table + "
                     WHERE " + $time + " >= $1 AND " + $time + " <= now() - interval '" + $age + "'
                     ORDER BY " + $time + " LIMIT $2 FOR UPDATE SKIP LOCKED
                 )) RETURNING " + $time,
                from,
                batch
            );
            let times = times.fetch_all(database).await?;
            Ok((times.len(), times.into_iter().max()))
        }
    };
}

delete_by_time!(
    /// Deletes the ids of messages from providers. A message of that age is refused, so no message
    /// is applied twice. The outcome of a request to delete data can be seen for as long.
    provider_events: "provider_events", "received_at", "90 days"
);
delete_by_time!(
    /// Deletes the hashes of identities that were deleted. Tokens from before the deletion are
    /// older than any provider's `max_token_age`, which is a day at most, even if the clocks
    /// differ.
    deleted_identities: "deleted_identities", "deleted_at", "25 hours"
);
delete_by_time!(
    /// Deletes sign-ins of staff that were begun and not completed.
    staff_sign_ins: "staff_sign_ins", "created_at", "10 minutes"
);

/// Reads the next `batch` events after `after`, and deletes the events older than `days`. Returns
/// their number, and the last one's id.
pub async fn events(
    database: &Database,
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
    let deleted = deleted.fetch_all(database).await?;
    Ok((deleted.len(), deleted.into_iter().max()))
}
