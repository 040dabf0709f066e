//! Who is staff, changed: each change with its event, and never so that nobody is an admin.
//!
//! What staff change, here and of users, they change by a statement that asks for their role itself: between the
//! guard's look at it and the last byte of a form, it may have been taken away. The row stays locked until the
//! statement is over, so that nobody acts once it is said that they no longer can.

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use super::users::Origin;
use crate::domain::staff::Role;

/// Who makes a change, and why.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// Who.
    pub actor: Actor<'a>,
    /// Their reason.
    pub reason: Option<&'a str>,
    /// Where the request came from.
    pub origin: &'a Origin,
}

/// Who acts.
#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// The member of staff with that address.
    Staff(&'a str),
    /// Whoever has a shell beside the service, under that name.
    Operator(&'a str),
}

impl<'a> Actor<'a> {
    /// Their name in events.
    #[must_use]
    pub const fn name(self) -> &'a str {
        match self {
            Self::Staff(name) | Self::Operator(name) => name,
        }
    }

    /// The role that they need for what this role may do; none where they need none.
    pub(super) const fn needs(self, role: Role) -> Option<&'static str> {
        match self {
            Self::Staff(_) => Some(role.name()),
            Self::Operator(_) => None,
        }
    }
}

/// How a change to what somebody has looked at ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It is made.
    Done,
    /// It was not: something has changed since.
    Changed,
    /// It was not: whoever asks for it may not.
    NotPermitted,
}

impl Made {
    /// Of a statement that did so, or not, for somebody who may, or may not.
    pub(super) const fn of(done: bool, permitted: bool) -> Self {
        match (done, permitted) {
            (true, _) => Self::Done,
            (false, true) => Self::Changed,
            (false, false) => Self::NotPermitted,
        }
    }
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
    /// Whoever asks for it is no admin, or it is their own access.
    NotPermitted,
}

/// Adds a member, or changes the role of one.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn add(pool: &PgPool, email: &str, role: Role, by: By<'_>) -> Result<Changed, Error> {
    // The other admins are locked, so that two of them cannot demote each other; who asks is among them.
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
                      $7::text::inet, $8, $9
               FROM added
           )
           SELECT EXISTS (SELECT FROM added) AS "done!", EXISTS (SELECT FROM permitted) AS "permitted!",
                  (SELECT role FROM before) AS "before?""#,
        Uuid::now_v7(),
        email,
        role.name(),
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(match row.before {
        _ if row.done => Changed::Done,
        _ if !row.permitted => Changed::NotPermitted,
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
                      $5::text::inet, $6, $7
               FROM removed
           )
           SELECT EXISTS (SELECT FROM removed) AS "done!", EXISTS (SELECT FROM permitted) AS "permitted!",
                  EXISTS (SELECT FROM before) AS "before!""#,
        email,
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
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

/// Forgets who a member is at the provider and ends their sessions: their next sign-in decides it anew.
/// [`Changed::Already`] when there is no such member. No page does it, so nobody's role is asked for.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn reset(pool: &PgPool, email: &str, operator: &str) -> Result<Changed, Error> {
    let done = sqlx::query_scalar!(
        r#"WITH reset AS (
               UPDATE staff SET provider = NULL, subject = NULL WHERE email = $1 RETURNING id
           ),
           ended AS (
               DELETE FROM staff_sessions s USING reset r WHERE s.staff_id = r.id
           ),
           recorded AS (
               INSERT INTO events (id, kind, actor, detail)
               SELECT $2, 'staff_identity_reset', $3, jsonb_build_object('staff', $1::text) FROM reset
           )
           SELECT EXISTS (SELECT FROM reset) AS "done!""#,
        email,
        Uuid::now_v7(),
        operator,
    );
    Ok(if done.fetch_one(pool).await? { Changed::Done } else { Changed::Already })
}
