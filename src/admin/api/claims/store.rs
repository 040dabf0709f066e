//! The statement that sets a user's claims.

use sqlx::PgPool;
use uuid::Uuid;

use crate::domain::actor::By;
use crate::domain::custom_claims::CustomClaims;
use crate::store::Error;

/// Sets a user's claims, and records it if they differ. Returns false if there is no such user. No claims are stored as
/// NULL.
pub async fn set(pool: &PgPool, user: Uuid, claims: &CustomClaims, by: By<'_>) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"WITH changed AS (
               UPDATE users SET claims = nullif($2::text::jsonb, '{}'), updated_at = now()
               WHERE id = $1 AND claims IS DISTINCT FROM nullif($2::text::jsonb, '{}')
               RETURNING id, claims
           ),
           recorded AS (
               INSERT INTO events (kind, user_id, actor, detail, ip, user_agent, request_id)
               SELECT 'claims_changed', id, $3,
                      jsonb_build_object('claims', coalesce(claims, '{}'), 'reason', $4::text), $5::inet, $6, $7
               FROM changed
           )
           SELECT EXISTS (SELECT FROM users WHERE id = $1) AS "found!""#,
        user,
        claims.json(),
        by.actor.name(),
        by.reason,
        by.origin.ip as _,
        by.origin.user_agent,
        by.origin.request_id,
    );
    Ok(found.fetch_one(pool).await?)
}
