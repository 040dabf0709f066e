//! Who is staff, changed: each change with its event, and never so that nobody is an admin.

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use super::users::Origin;
use crate::domain::staff::Role;

/// Who makes a change, and why.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// Address of the member of staff, or what else did it.
    pub actor: &'a str,
    /// Their reason.
    pub reason: Option<&'a str>,
    /// Where the request came from.
    pub origin: &'a Origin,
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is as was asked for.
    Done,
    /// It was so before.
    Already,
    /// Nobody would have been an admin.
    LastAdmin,
}

/// Adds a member, or changes the role of one.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn add(pool: &PgPool, email: &str, role: Role, by: By<'_>) -> Result<Changed, Error> {
    // The other admins are locked, so that two of them cannot demote each other.
    let row = sqlx::query!(
        r#"WITH others AS MATERIALIZED (
               SELECT id FROM staff WHERE role = 'admin' AND email <> $2 ORDER BY id FOR UPDATE
           ),
           before AS MATERIALIZED (SELECT role FROM staff WHERE email = $2),
           added AS (
               INSERT INTO staff (id, email, role) VALUES ($1, $2, $3)
               ON CONFLICT (email) DO UPDATE SET role = excluded.role
               WHERE staff.role <> excluded.role AND (excluded.role = 'admin' OR EXISTS (SELECT FROM others))
               RETURNING id
           ),
           recorded AS (
               INSERT INTO events (id, kind, actor, detail, ip, user_agent, request_id)
               SELECT $4, CASE WHEN EXISTS (SELECT FROM before) THEN 'staff_role_changed' ELSE 'staff_added' END, $5,
                      jsonb_strip_nulls(jsonb_build_object('staff', $2::text, 'role', $3::text, 'reason', $6::text)),
                      $7::text::inet, $8, $9
               FROM added
           )
           SELECT EXISTS (SELECT FROM added) AS "done!", (SELECT role FROM before) AS "before?""#,
        Uuid::now_v7(),
        email,
        role.name(),
        Uuid::now_v7(),
        by.actor,
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
    );
    let row = row.fetch_one(pool).await?;
    Ok(match row.before {
        _ if row.done => Changed::Done,
        Some(before) if before == role.name() => Changed::Already,
        _ => Changed::LastAdmin,
    })
}

/// Removes a member and ends their sessions. [`Changed::Already`] when there is no such member.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn remove(pool: &PgPool, email: &str, by: By<'_>) -> Result<Changed, Error> {
    let row = sqlx::query!(
        r#"WITH others AS MATERIALIZED (
               SELECT id FROM staff WHERE role = 'admin' AND email <> $1 ORDER BY id FOR UPDATE
           ),
           before AS MATERIALIZED (SELECT role FROM staff WHERE email = $1),
           removed AS (
               DELETE FROM staff WHERE email = $1 AND (role <> 'admin' OR EXISTS (SELECT FROM others)) RETURNING role
           ),
           recorded AS (
               INSERT INTO events (id, kind, actor, detail, ip, user_agent, request_id)
               SELECT $2, 'staff_removed', $3,
                      jsonb_strip_nulls(jsonb_build_object('staff', $1::text, 'role', role, 'reason', $4::text)),
                      $5::text::inet, $6, $7
               FROM removed
           )
           SELECT EXISTS (SELECT FROM removed) AS "done!", EXISTS (SELECT FROM before) AS "before!""#,
        email,
        Uuid::now_v7(),
        by.actor,
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
    );
    let row = row.fetch_one(pool).await?;
    Ok(match row.before {
        _ if row.done => Changed::Done,
        false => Changed::Already,
        true => Changed::LastAdmin,
    })
}
