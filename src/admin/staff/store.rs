//! Changes of staff access. Each change records its event. The last admin cannot be removed.
//!
//! Each statement that makes a change for staff, here or to users, checks the actor's role itself
//! (`author_allowed`).

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{Database, Error};
use crate::domain::{Access, Author, Role};
use crate::events::SqlAuthor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// Nothing had to change, or a key to add exists already.
    Already,
    /// Refused: no admin would be left whose access does not end.
    LastAdmin,
    /// Refused: the actor is no admin, or it is their own access.
    NotPermitted,
}

impl Changed {
    pub(in crate::admin) const fn of(done: bool, permitted: bool) -> Self {
        match (done, permitted) {
            (true, _) => Self::Done,
            (false, true) => Self::Already,
            (false, false) => Self::NotPermitted,
        }
    }
}

/// Adds a member, or replaces a member's access. At least one admin whose access does not end
/// remains.
pub async fn add(
    database: &Database,
    email: &str,
    access: impl Into<Access>,
    by: Author<'_>,
) -> Result<Changed, Error> {
    let access = access.into();
    database
        .run(|_| try_to_add(database, email, access, by))
        .await
}

async fn try_to_add(
    database: &Database,
    email: &str,
    access: Access,
    by: Author<'_>,
) -> Result<Changed, Error> {
    let Access {
        role,
        may_export,
        ends_at,
    } = access;
    let role: &str = role.into();
    // It locks the admins, including the actor, so that two admins cannot demote each other. It
    // locks the member together with them: two changes lock members in one order.
    let row = sqlx::query!(
        r#"WITH input AS (
               SELECT $1::uuid AS id, $2::text AS email, $3::text AS role, $4::boolean AS may_export,
                      $5::timestamptz AS ends_at, $6::author AS author
           ),
           locked AS MATERIALIZED (
               SELECT id, email, role, ends_at FROM current_staff
               WHERE role = 'admin' OR email = (SELECT email FROM input) ORDER BY id FOR UPDATE
           ),
           others AS MATERIALIZED (
               SELECT l.id, l.email, l.ends_at FROM locked l, input t WHERE l.role = 'admin' AND l.email <> t.email
           ),
           permitted AS MATERIALIZED (
               SELECT FROM input t
               WHERE (t.author).needs IS NULL OR EXISTS (SELECT FROM others o WHERE o.email = (t.author).actor)
           ),
           before AS MATERIALIZED (
               SELECT (s.role, s.may_export, s.ends_at) IS NOT DISTINCT FROM (t.role, t.may_export, t.ends_at) AS same
               FROM input t JOIN staff s ON s.email = t.email
           ),
           added AS (
               INSERT INTO staff (id, email, role, may_export, ends_at)
               SELECT t.id, t.email, t.role, t.may_export, t.ends_at FROM permitted, input t
               ON CONFLICT (email) DO UPDATE
               SET role = excluded.role, may_export = excluded.may_export, ends_at = excluded.ends_at
               WHERE (staff.role, staff.may_export, staff.ends_at)
                     IS DISTINCT FROM (excluded.role, excluded.may_export, excluded.ends_at)
                     AND (excluded.role = 'admin' AND excluded.ends_at IS NULL
                          OR staff.role <> 'admin' OR staff.ends_at IS NOT NULL
                          OR EXISTS (SELECT FROM others o WHERE o.ends_at IS NULL))
               RETURNING id
           ),
           recorded AS (
               INSERT INTO events
               SELECT e.* FROM added, input t, event_row(
                   t.author, CASE WHEN EXISTS (SELECT FROM before) THEN 'staff_role_changed' ELSE 'staff_added' END,
                   detail => jsonb_strip_nulls(jsonb_build_object(
                       'staff', t.email, 'role', t.role, 'export', CASE WHEN t.may_export THEN 'may export' END, 'until',
                       'until ' || to_char((t.ends_at - interval '1 second') AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')))
               ) AS e
           )
           SELECT EXISTS (SELECT FROM added) AS "done!", EXISTS (SELECT FROM permitted) AS "permitted!",
                  EXISTS (SELECT FROM before WHERE same) AS "same!""#,
        Uuid::now_v7(),
        email,
        role,
        may_export,
        ends_at,
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    let row = row.fetch_one(database).await?;
    Ok(match (row.done, row.permitted, row.same) {
        (true, ..) => Changed::Done,
        (false, false, _) => Changed::NotPermitted,
        (false, true, true) => Changed::Already,
        (false, true, false) => Changed::LastAdmin,
    })
}

/// Removes a member and ends their sessions. Returns [`Changed::Already`] if there is no such
/// member.
pub async fn remove(database: &Database, email: &str, by: Author<'_>) -> Result<Changed, Error> {
    let is_undone = |changed: &Changed| matches!(changed, Changed::Already);
    database
        .change(|| try_to_remove(database, email, by), is_undone)
        .await
}

async fn try_to_remove(database: &Database, email: &str, by: Author<'_>) -> Result<Changed, Error> {
    let row = sqlx::query!(
        r#"WITH locked AS MATERIALIZED (
               SELECT id, email, role, ends_at FROM current_staff WHERE role = 'admin' OR email = $1 ORDER BY id FOR UPDATE
           ),
           others AS MATERIALIZED (SELECT id, email, ends_at FROM locked WHERE role = 'admin' AND email <> $1),
           permitted AS MATERIALIZED (
               SELECT WHERE ($2::author).needs IS NULL OR EXISTS (SELECT FROM others WHERE email = ($2).actor)
           ),
           before AS MATERIALIZED (SELECT role FROM staff WHERE email = $1),
           removed AS (
               DELETE FROM staff
               WHERE email = $1 AND EXISTS (SELECT FROM permitted)
                     AND (role <> 'admin' OR ends_at IS NOT NULL OR EXISTS (SELECT FROM others o WHERE o.ends_at IS NULL))
               RETURNING role
           ),
           recorded AS (
               INSERT INTO events
               SELECT e.* FROM removed r, event_row($2, 'staff_removed',
                                                detail => jsonb_build_object('staff', $1::text, 'role', r.role)) AS e
           )
           SELECT EXISTS (SELECT FROM removed) AS "done!", EXISTS (SELECT FROM permitted) AS "permitted!",
                  EXISTS (SELECT FROM before) AS "before!""#,
        email,
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    let row = row.fetch_one(database).await?;
    Ok(match row.before {
        _ if row.done => Changed::Done,
        _ if !row.permitted => Changed::NotPermitted,
        false => Changed::Already,
        true => Changed::LastAdmin,
    })
}

/// Clears the identity that a member is pinned to, and ends their sessions. Their next sign-in pins
/// another, or the same unless it is suspended. Returns [`Changed::Already`] if there is no such
/// member.
pub async fn reset(database: &Database, email: &str, by: Author<'_>) -> Result<Changed, Error> {
    database.run(|_| try_to_reset(database, email, by)).await
}

async fn try_to_reset(database: &Database, email: &str, by: Author<'_>) -> Result<Changed, Error> {
    let row = sqlx::query!(
        r#"WITH locked AS MATERIALIZED (
               SELECT id FROM staff WHERE email IN ($1, ($2::author).actor) ORDER BY id FOR UPDATE
           ),
           permitted AS MATERIALIZED (
               SELECT author_allowed($2) AND ($2::author).actor <> $1 AS yes FROM (SELECT count(*) FROM locked) AS all_locked
           ),
           reset AS (
               UPDATE staff
               SET provider = NULL, subject = NULL, suspended_at = NULL, suspension_as_of = NULL,
                   barred_provider = CASE WHEN suspended_at IS NULL THEN barred_provider ELSE provider END,
                   barred_subject = CASE WHEN suspended_at IS NULL THEN barred_subject ELSE subject END,
                   barred_at = coalesce(suspended_at, barred_at)
               WHERE email = $1 AND (SELECT yes FROM permitted) RETURNING id
           ),
           ended AS (
               DELETE FROM staff_sessions s USING reset r WHERE s.staff_id = r.id
           ),
           recorded AS (
               INSERT INTO events
               SELECT e.* FROM reset, event_row($2, 'staff_identity_reset', detail => jsonb_build_object('staff', $1::text)) AS e
           )
           SELECT EXISTS (SELECT FROM reset) AS "done!", yes AS "permitted!" FROM permitted"#,
        email,
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    let row = row.fetch_one(database).await?;
    Ok(Changed::of(row.done, row.permitted))
}

/// A member of staff whose account its provider has reported hijacked, and the access that the
/// account gave before.
#[derive(Debug, Clone, Serialize)]
pub struct HijackedRow {
    pub email: String,
    /// The time of the latest report.
    #[serde(with = "time::serde::rfc3339")]
    pub reported_at: OffsetDateTime,
    /// Seven days before the first report, or the account's last sign-in before it, if that is
    /// earlier.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// The API keys added, the members of staff added or changed, and the held identities released
    /// since then.
    pub keys: i64,
    pub members: i64,
    pub releases: i64,
}

/// Returns the members whose accounts were reported hijacked in the last 30 days, and who gave
/// access before the report. Their actions come from their events, which outlive their access.
pub async fn hijacked(database: &Database) -> Result<Vec<HijackedRow>, Error> {
    let rows = sqlx::query_as!(
        HijackedRow,
        r#"WITH reports AS MATERIALIZED (
               SELECT id, detail->>'member' AS email, (detail->>'at')::timestamptz AS at FROM events
               WHERE reason = 'account_disabled' AND kind = 'provider_event' AND id >= first_id(now() - interval '30 days')
                     AND detail->>'member' IS NOT NULL AND detail->>'cause' IS DISTINCT FROM 'bulk-account'
           ),
           members AS MATERIALIZED (
               SELECT email, max(id::text)::uuid AS last_id, max(at) AS reported_at,
                      least(min(at) - interval '7 days', (
                          SELECT max(s.created_at) FROM events s
                          WHERE s.actor = r.email AND s.kind = 'staff_signed_in' AND s.created_at < min(r.at)
                      )) AS since
               FROM reports r GROUP BY email
           )
           SELECT m.email AS "email!", m.reported_at AS "reported_at!", m.since AS "since!",
                  count(*) FILTER (WHERE e.kind = 'api_key_added') AS "keys!",
                  count(*) FILTER (WHERE e.kind LIKE 'staff%') AS "members!",
                  count(*) FILTER (WHERE e.kind = 'identity_released') AS "releases!"
           FROM members m
           JOIN events e ON e.actor = m.email AND e.id >= first_id(m.since) AND e.id < m.last_id
           WHERE e.kind IN ('api_key_added', 'staff_added', 'staff_role_changed', 'staff_identity_reset', 'identity_released')
           GROUP BY m.email, m.reported_at, m.since ORDER BY m.reported_at DESC"#,
    );
    Ok(rows.fetch_all(database).await?)
}
