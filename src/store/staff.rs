//! Staff, their sessions, and their sign-ins under way. Who is staff changes in `staff_access`.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use super::users::Origin;
use crate::domain::staff::Role;

/// A member of staff.
#[derive(Debug, Clone)]
pub struct StaffRow {
    /// Key of the member.
    pub id: Uuid,
    /// Address, ASCII case-folded.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Since when they are.
    pub created_at: OffsetDateTime,
    /// When they last looked at a page.
    pub last_seen_at: Option<OffsetDateTime>,
    /// The zone in which they read times, by its name in the IANA database.
    pub time_zone: Option<String>,
}

pub(super) fn role(name: &str) -> Result<Role, Error> {
    Role::from_name(name).ok_or_else(|| Error::unexpected(name))
}

/// Everyone, by address.
///
/// # Errors
/// See [`Error`].
pub async fn all(pool: &PgPool) -> Result<Vec<StaffRow>, Error> {
    let rows =
        sqlx::query!("SELECT id, email, role, created_at, last_seen_at, time_zone FROM staff ORDER BY email");
    let rows = rows.fetch_all(pool).await?.into_iter();
    rows.map(|row| {
        let role = role(&row.role)?;
        Ok(StaffRow {
            id: row.id,
            email: row.email,
            role,
            created_at: row.created_at,
            last_seen_at: row.last_seen_at,
            time_zone: row.time_zone,
        })
    })
    .collect()
}

/// A sign-in that the identity provider has yet to answer.
#[derive(Debug, Clone)]
pub struct Pending {
    /// `nonce` that the `id_token` must carry.
    pub nonce: String,
    /// PKCE verifier (RFC 7636).
    pub code_verifier: String,
    /// Where to go afterwards.
    pub next: String,
}

/// Remembers a sign-in under way, and forgets those of the past.
///
/// # Errors
/// See [`Error`].
pub async fn begin(
    pool: &PgPool,
    state: &[u8; 32],
    browser: &[u8; 32],
    pending: &Pending,
) -> Result<(), Error> {
    sqlx::query!(
        "WITH forgotten AS (
             DELETE FROM staff_sign_ins WHERE state_hash IN (
                 SELECT state_hash FROM staff_sign_ins WHERE created_at < now() - interval '10 minutes'
                 ORDER BY created_at LIMIT 100 FOR UPDATE SKIP LOCKED)
         )
         INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next) VALUES ($1, $2, $3, $4, $5)",
        state.as_slice(),
        browser.as_slice(),
        pending.nonce,
        pending.code_verifier,
        pending.next,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Takes a sign-in under way: once, within ten minutes, and only for the browser that began it.
///
/// # Errors
/// See [`Error`].
pub async fn take(pool: &PgPool, state: &[u8; 32], browser: &[u8; 32]) -> Result<Option<Pending>, Error> {
    let pending = sqlx::query_as!(
        Pending,
        "DELETE FROM staff_sign_ins
         WHERE state_hash = $1 AND browser_hash = $2 AND created_at > now() - interval '10 minutes'
         RETURNING nonce, code_verifier, next",
        state.as_slice(),
        browser.as_slice(),
    );
    Ok(pending.fetch_optional(pool).await?)
}

/// Opens a session for the member with that address, and records it; or records the refusal.
/// Answers whether there is such a member.
///
/// # Errors
/// See [`Error`].
pub async fn open_session(
    pool: &PgPool,
    email: &str,
    hash: &[u8; 32],
    origin: &Origin,
) -> Result<bool, Error> {
    let opened = sqlx::query_scalar!(
        r#"WITH member AS (SELECT id FROM staff WHERE email = $1),
         opened AS (
             INSERT INTO staff_sessions (hash, staff_id, ip, user_agent)
             SELECT $2, id, $4::text::inet, $5 FROM member RETURNING staff_id
         ),
         recorded AS (
             INSERT INTO events (id, kind, actor, ip, user_agent, request_id)
             SELECT $3, CASE WHEN EXISTS (SELECT FROM member) THEN 'staff_signed_in' ELSE 'staff_refused' END,
                    $1, $4::text::inet, $5, $6
         )
         SELECT EXISTS (SELECT FROM opened) AS "opened!""#,
        email,
        hash.as_slice(),
        Uuid::now_v7(),
        origin.ip.map(|ip| ip.to_string()),
        origin.user_agent,
        origin.request_id,
    );
    Ok(opened.fetch_one(pool).await?)
}

/// The member whose session this is, if it is neither idle for half an hour nor older than twelve
/// hours; the visit is noted.
///
/// # Errors
/// See [`Error`].
pub async fn by_session(pool: &PgPool, hash: &[u8; 32]) -> Result<Option<StaffRow>, Error> {
    let row = sqlx::query!(
        "WITH visit AS (
             UPDATE staff_sessions SET last_used_at = now()
             WHERE hash = $1 AND last_used_at > now() - interval '30 minutes'
                   AND created_at > now() - interval '12 hours'
             RETURNING staff_id
         )
         UPDATE staff s SET last_seen_at = now() FROM visit v WHERE s.id = v.staff_id
         RETURNING s.id, s.email, s.role, s.created_at, s.last_seen_at, s.time_zone",
        hash.as_slice(),
    );
    let Some(row) = row.fetch_optional(pool).await? else { return Ok(None) };
    let role = role(&row.role)?;
    let (created_at, last_seen_at) = (row.created_at, row.last_seen_at);
    let time_zone = row.time_zone;
    Ok(Some(StaffRow { id: row.id, email: row.email, role, created_at, last_seen_at, time_zone }))
}

/// Ends a session, or all of the member's.
///
/// # Errors
/// See [`Error`].
pub async fn end_sessions(pool: &PgPool, hash: &[u8; 32], everywhere: bool) -> Result<(), Error> {
    sqlx::query!(
        "DELETE FROM staff_sessions WHERE hash = $1
         OR ($2 AND staff_id = (SELECT staff_id FROM staff_sessions WHERE hash = $1))",
        hash.as_slice(),
        everywhere,
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Sets the zone in which a member reads times.
///
/// # Errors
/// See [`Error`].
pub async fn set_time_zone(pool: &PgPool, member: Uuid, time_zone: Option<&str>) -> Result<(), Error> {
    sqlx::query!("UPDATE staff SET time_zone = $2 WHERE id = $1", member, time_zone).execute(pool).await?;
    Ok(())
}
