//! Changes of staff access. Each change records its event, and none removes the last admin.
//!
//! Each statement by which staff change anything, here or of users, checks the actor's role itself: they may lose it
//! between the guard's check and the last byte of a form. The actor's row stays locked until the statement ends, so
//! nobody acts without their role.

use sqlx::PgPool;
use uuid::Uuid;

use crate::domain::actor::By;
use crate::domain::staff::Role;
use crate::store::Error;

/// The result of a change of staff access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The change was made.
    Done,
    /// Nothing had to change.
    Already,
    /// Refused: no admin would be left.
    LastAdmin,
    /// Refused: the actor is no admin, or it is their own access.
    NotPermitted,
}

/// Adds a member, or changes a member's role.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn add(pool: &PgPool, email: &str, role: Role, by: By<'_>) -> Result<Changed, Error> {
    let role: &str = role.into();
    // It locks the other admins, including the actor, so that two of them cannot demote each other.
    let row = sqlx::query!(
        r#"WITH others AS MATERIALIZED (
               SELECT id, email FROM staff WHERE role = 'admin' AND email <> $2 ORDER BY id FOR UPDATE
           ),
           permitted AS MATERIALIZED (
               SELECT WHERE $10::text IS NULL OR EXISTS (SELECT FROM others WHERE email = $5)
           ),
           before AS MATERIALIZED (SELECT role FROM staff WHERE email = $2),
           added AS (
               INSERT INTO staff (id, email, role) SELECT $1, $2, $3 FROM permitted
               ON CONFLICT (email) DO UPDATE SET role = excluded.role
               WHERE staff.role <> excluded.role AND (excluded.role = 'admin' OR EXISTS (SELECT FROM others))
               RETURNING id
           ),
           recorded AS (
               INSERT INTO events (id, kind, actor, detail, ip, user_agent, request_id)
               SELECT $4, CASE WHEN EXISTS (SELECT FROM before) THEN 'staff_role_changed' ELSE 'staff_added' END, $5,
                      jsonb_strip_nulls(jsonb_build_object('staff', $2::text, 'role', $3::text, 'reason', $6::text)),
                      $7::inet, $8, $9
               FROM added
           )
           SELECT EXISTS (SELECT FROM added) AS "done!", EXISTS (SELECT FROM permitted) AS "permitted!",
                  (SELECT role FROM before) AS "before?""#,
        Uuid::now_v7(),
        email,
        role,
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip as _,
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(match row.before {
        _ if row.done => Changed::Done,
        _ if !row.permitted => Changed::NotPermitted,
        Some(before) if before == role => Changed::Already,
        _ => Changed::LastAdmin,
    })
}

/// Removes a member and ends their sessions. Returns [`Changed::Already`] if there is no such member.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn remove(pool: &PgPool, email: &str, by: By<'_>) -> Result<Changed, Error> {
    let row = sqlx::query!(
        r#"WITH others AS MATERIALIZED (
               SELECT id, email FROM staff WHERE role = 'admin' AND email <> $1 ORDER BY id FOR UPDATE
           ),
           permitted AS MATERIALIZED (
               SELECT WHERE $8::text IS NULL OR EXISTS (SELECT FROM others WHERE email = $3)
           ),
           before AS MATERIALIZED (SELECT role FROM staff WHERE email = $1),
           removed AS (
               DELETE FROM staff WHERE email = $1 AND EXISTS (SELECT FROM permitted) AND (role <> 'admin' OR EXISTS (SELECT FROM others)) RETURNING role
           ),
           recorded AS (
               INSERT INTO events (id, kind, actor, detail, ip, user_agent, request_id)
               SELECT $2, 'staff_removed', $3,
                      jsonb_strip_nulls(jsonb_build_object('staff', $1::text, 'role', role, 'reason', $4::text)),
                      $5::inet, $6, $7
               FROM removed
           )
           SELECT EXISTS (SELECT FROM removed) AS "done!", EXISTS (SELECT FROM permitted) AS "permitted!",
                  EXISTS (SELECT FROM before) AS "before!""#,
        email,
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip as _,
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(match row.before {
        _ if row.done => Changed::Done,
        _ if !row.permitted => Changed::NotPermitted,
        false => Changed::Already,
        true => Changed::LastAdmin,
    })
}

/// Clears the identity that a member is pinned to, and ends their sessions. Their next sign-in pins it again. Returns
/// [`Changed::Already`] if there is no such member.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn reset(pool: &PgPool, email: &str, by: By<'_>) -> Result<Changed, Error> {
    let row = sqlx::query!(
        r#"WITH permitted AS MATERIALIZED (
               SELECT FROM staff WHERE email = $3 AND role = $8 AND email <> $1 FOR SHARE
           ),
           reset AS (
               UPDATE staff SET provider = NULL, subject = NULL
               WHERE email = $1 AND ($8::text IS NULL OR EXISTS (SELECT FROM permitted)) RETURNING id
           ),
           ended AS (
               DELETE FROM staff_sessions s USING reset r WHERE s.staff_id = r.id
           ),
           recorded AS (
               INSERT INTO events (id, kind, actor, detail, ip, user_agent, request_id)
               SELECT $2, 'staff_identity_reset', $3,
                      jsonb_strip_nulls(jsonb_build_object('staff', $1::text, 'reason', $4::text)),
                      $5::inet, $6, $7
               FROM reset
           )
           SELECT EXISTS (SELECT FROM reset) AS "done!",
                  $8::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!""#,
        email,
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip as _,
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(match (row.done, row.permitted) {
        (true, _) => Changed::Done,
        (false, true) => Changed::Already,
        (false, false) => Changed::NotPermitted,
    })
}
