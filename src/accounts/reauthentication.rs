//! Checks that a user has just signed in.

use uuid::Uuid;

use crate::database::{Database, Error};
use crate::domain::VerifiedClaims;

/// Returns `true` if a session was opened in the last `seconds`, or `None` if it has ended or its
/// identity is suspended.
pub async fn opened_within(
    database: &Database,
    session: Uuid,
    seconds: u32,
) -> Result<Option<bool>, Error> {
    let fresh = sqlx::query_scalar!(
        r#"SELECT s.created_at > now() - $2::integer * interval '1 second' AS "fresh!"
           FROM live_sessions s WHERE s.id = $1"#,
        session,
        i32::try_from(seconds).unwrap_or(i32::MAX),
    );
    Ok(fresh.fetch_optional(database).await?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    Theirs,
    NotTheirs,
    Suspended,
    Outdated,
}

/// Judges an identity as a proof that the user has signed in.
pub async fn judge(
    database: &Database,
    user: Uuid,
    provider: &str,
    claims: &VerifiedClaims,
) -> Result<Proof, Error> {
    let row = sqlx::query!(
        r#"SELECT suspended_at IS NOT NULL AS "suspended!", coalesce(tokens_from > $4, false) AS "outdated!"
           FROM identities WHERE provider = $1 AND subject = $2 AND user_id = $3"#,
        provider,
        claims.subject,
        user,
        claims.issued_at,
    );
    Ok(match row.fetch_optional(database).await? {
        None => Proof::NotTheirs,
        Some(row) if row.suspended => Proof::Suspended,
        Some(row) if row.outdated => Proof::Outdated,
        Some(_) => Proof::Theirs,
    })
}
