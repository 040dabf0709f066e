//! Checks that a user has just signed in.

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use crate::domain::claims::VerifiedClaims;

/// Returns `true` if a session was opened within that many seconds, or `None` if it has ended.
///
/// # Errors
/// See [`Error`].
pub async fn opened_within(pool: &PgPool, session: Uuid, seconds: u32) -> Result<Option<bool>, Error> {
    let fresh = sqlx::query_scalar!(
        r#"SELECT created_at > now() - $2::integer * interval '1 second' AS "fresh!"
           FROM sessions WHERE id = $1 AND ended_at IS NULL"#,
        session,
        i32::try_from(seconds).unwrap_or(i32::MAX),
    );
    Ok(fresh.fetch_optional(pool).await?)
}

/// Returns `true` if the identity that a provider vouches for is one of the user's, or `None` if that is suspended.
///
/// # Errors
/// See [`Error`].
pub async fn is_identity_of(
    pool: &PgPool,
    user: Uuid,
    provider: &str,
    claims: &VerifiedClaims,
) -> Result<Option<bool>, Error> {
    let suspended = sqlx::query_scalar!(
        r#"SELECT suspended_at IS NOT NULL AS "suspended!"
           FROM identities WHERE provider = $1 AND subject = $2 AND user_id = $3"#,
        provider,
        claims.subject,
        user,
    );
    Ok(match suspended.fetch_optional(pool).await? {
        Some(true) => None,
        found => Some(found.is_some()),
    })
}
