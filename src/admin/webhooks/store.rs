//! The events of what staff do with webhooks.

use sqlx::PgPool;
use uuid::Uuid;

use crate::domain::actor::By;
use crate::store::Error;

/// Records that an admin lets the messages of a webhook be sent again. Returns `false`, and records nothing, if they are
/// no longer an admin.
///
/// # Errors
/// See [`Error`].
pub(super) async fn record(pool: &PgPool, webhook: &str, by: By<'_>) -> Result<bool, Error> {
    let recorded = sqlx::query!(
        "INSERT INTO events (id, kind, actor, detail, ip, user_agent, request_id)
         SELECT $1, 'webhook_replayed', email, jsonb_build_object('reason', $3::text, 'webhook', $4::text),
                $5::inet, $6, $7
         FROM current_staff WHERE email = $2 AND role = 'admin'",
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        webhook,
        by.origin.ip as _,
        by.origin.user_agent,
        by.origin.request_id,
    )
    .execute(pool)
    .await?;
    Ok(recorded.rows_affected() > 0)
}
