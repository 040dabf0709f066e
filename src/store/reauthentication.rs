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

/// Returns `true` if the identity that a provider vouches for is one of the user's.
///
/// # Errors
/// See [`Error`].
pub async fn is_identity_of(
    pool: &PgPool,
    user: Uuid,
    provider: &str,
    claims: &VerifiedClaims,
) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM identities WHERE provider = $1 AND subject = $2 AND user_id = $3
           ) AS "found!""#,
        provider,
        claims.subject,
        user,
    );
    Ok(found.fetch_one(pool).await?)
}
