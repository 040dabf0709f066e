//! Members of staff, their sessions and pending sign-ins. `admin::staff` adds and removes members.
//!
//! Each statement locks a member before the member's sessions, so that no two of them wait for each
//! other.

use serde::Serialize;
use sqlx::FromRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::OpaqueToken;
use crate::database::{Database, Error};
use crate::domain::{Access, Origin, Role};

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct StaffRow {
    pub id: Uuid,
    /// E-mail address, ASCII case-folded.
    pub email: String,
    #[serde(skip)]
    #[sqlx(try_from = "&'a str")]
    pub role: Role,
    may_export: bool,
    #[serde(skip)]
    pub ends_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_seen_at: Option<OffsetDateTime>,
    /// Time zone for displayed times, by its name in the IANA database.
    pub time_zone: Option<String>,
    /// The only identity with which they may sign in, once their first sign-in has pinned it.
    pub provider: Option<String>,
    pub subject: Option<String>,
}

impl StaffRow {
    pub const fn access(&self) -> Access {
        Access {
            role: self.role,
            may_export: self.may_export,
            ends_at: self.ends_at,
        }
    }
}

/// Returns all members, ordered by e-mail address, including members whose access has ended.
pub async fn all(database: &Database) -> Result<Vec<StaffRow>, Error> {
    let rows = sqlx::query_as(
        "SELECT id, email, role, may_export, ends_at, last_seen_at, time_zone, provider, subject FROM staff ORDER BY email",
    );
    Ok(rows.fetch_all(database).await?)
}

pub async fn may_export(database: &Database, id: Uuid) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM current_staff WHERE id = $1 AND (may_export OR role = 'admin')) AS "found!""#,
        id
    );
    Ok(found.fetch_one(database).await?)
}

#[derive(Debug, Clone)]
pub struct Pending {
    /// `nonce` that the `id_token` must carry.
    pub nonce: String,
    /// PKCE verifier (RFC 7636).
    pub code_verifier: String,
    pub next: String,
}

pub async fn begin(
    database: &Database,
    state: &[u8; 32],
    browser: &[u8; 32],
    pending: &Pending,
) -> Result<(), Error> {
    sqlx::query!(
        "INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next) VALUES ($1, $2, $3, $4, $5)",
        state.as_slice(),
        browser.as_slice(),
        pending.nonce,
        pending.code_verifier,
        pending.next,
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Removes and returns a pending sign-in: once, within ten minutes, and only for the browser that
/// began it.
pub async fn take(
    database: &Database,
    state: &str,
    browser: &str,
) -> Result<Option<Pending>, Error> {
    let Some((state, browser)) = OpaqueToken::parse(state).zip(OpaqueToken::parse(browser)) else {
        return Ok(None);
    };
    let pending = sqlx::query_as!(
        Pending,
        "DELETE FROM staff_sign_ins
         WHERE state_hash = $1 AND browser_hash = $2 AND created_at > now() - interval '10 minutes'
         RETURNING nonce, code_verifier, next",
        state.as_slice(),
        browser.as_slice(),
    );
    Ok(pending.fetch_optional(database).await?)
}

/// A person whom a provider has authenticated, and who asks for access to the pages.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub email: &'a str,
    pub provider: &'a str,
    pub subject: &'a str,
    /// The reason why the e-mail address counts as unproven, if it does.
    pub unproven: Option<&'a str>,
    /// SHA-256 of the session cookie that their browser already had.
    pub before: Option<&'a [u8; 32]>,
}

/// The reason why a person whom the provider has authenticated does not see the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// The e-mail address belongs to no member, or the provider has not verified it.
    NotStaff,
    /// The provider gave no e-mail address.
    NoEmail,
    NobodyYet,
    /// The provider has verified the e-mail address once, and does not run the mailbox.
    NotAuthoritative,
    /// The member with that e-mail address first signed in with another account.
    AnotherIdentity,
    /// The provider has reported the account hijacked, disabled or deleted.
    Suspended,
}

/// Maximum number of sessions of a member. The oldest ones end.
const MAX_SESSIONS: i64 = 5;

/// Opens a session for the member with that e-mail address, or refuses. Either is recorded. The
/// first sign-in pins the member's identity. The session that the browser had before ends, even if
/// it was another member's.
pub async fn open_session(
    database: &Database,
    candidate: Candidate<'_>,
    hash: &[u8; 32],
    origin: &Origin,
) -> Result<Result<(), Stranger>, Error> {
    let Candidate {
        email,
        provider,
        subject,
        unproven,
        before,
    } = candidate;
    // Of two first sign-ins at once, the second waits for the row, and then finds the identity
    // pinned.
    let row = sqlx::query!(
        r#"WITH input AS (
             SELECT $1::text AS email, $2::bytea AS hash, $3::uuid AS event_id, $4::inet AS ip, $5::text AS user_agent,
                    $6::text AS request_id, $7::text AS provider, $8::text AS subject, $9::text AS unproven,
                    $10::bytea AS hash_before, $11::bigint AS max_sessions
         ),
         listed AS (
             SELECT FROM current_staff s JOIN input t ON s.email = t.email WHERE t.unproven IS NULL
         ),
         suspended AS (
             SELECT FROM staff s JOIN input t ON (s.provider, s.subject) = (t.provider, t.subject)
             WHERE s.suspended_at IS NOT NULL
             UNION ALL
             SELECT FROM staff s JOIN input t ON (s.barred_provider, s.barred_subject) = (t.provider, t.subject)
             UNION ALL
             SELECT FROM identities i JOIN input t ON (i.provider, i.subject) = (t.provider, t.subject)
             WHERE i.suspended_at IS NOT NULL
         ),
         member AS (
             UPDATE current_staff s SET provider = t.provider, subject = t.subject
             FROM input t
             WHERE s.email = t.email AND t.unproven IS NULL
                   AND (s.subject IS NULL OR (s.provider, s.subject) = (t.provider, t.subject))
                   AND NOT EXISTS (SELECT FROM suspended)
             RETURNING s.id
         ),
         ended AS (
             DELETE FROM staff_sessions WHERE EXISTS (SELECT FROM member) AND hash IN (
                 SELECT hash_before FROM input
                 UNION ALL
                 (SELECT s.hash FROM staff_sessions s JOIN member m ON m.id = s.staff_id
                  WHERE s.hash IS DISTINCT FROM (SELECT hash_before FROM input)
                  ORDER BY s.created_at DESC OFFSET (SELECT max_sessions FROM input) - 1)
             )
         ),
         opened AS (
             INSERT INTO staff_sessions (hash, staff_id, ip, user_agent)
             SELECT t.hash, m.id, t.ip, t.user_agent FROM member m, input t RETURNING staff_id
         ),
         recorded AS (
             INSERT INTO events (id, kind, reason, provider, actor, ip, user_agent, request_id)
             SELECT t.event_id, CASE WHEN EXISTS (SELECT FROM member) THEN 'staff_signed_in' ELSE 'staff_refused' END,
                    CASE WHEN EXISTS (SELECT FROM member) THEN NULL
                         WHEN EXISTS (SELECT FROM suspended) THEN 'identity_suspended'
                         WHEN EXISTS (SELECT FROM listed) THEN 'another_identity' ELSE t.unproven END,
                    t.provider, t.email, t.ip, t.user_agent, t.request_id
             FROM input t
         )
         SELECT EXISTS (SELECT FROM opened) AS "opened!", EXISTS (SELECT FROM listed) AS "listed!",
                EXISTS (SELECT FROM suspended) AS "suspended!""#,
        email,
        hash.as_slice(),
        Uuid::now_v7(),
        origin.ip as _,
        origin.user_agent,
        origin.request_id,
        provider,
        subject,
        unproven,
        before.map(<[u8; 32]>::as_slice),
        MAX_SESSIONS,
    );
    let row = row.fetch_one(database).await?;
    Ok(match (row.opened, row.suspended, row.listed) {
        (true, ..) => Ok(()),
        (false, true, _) => Err(Stranger::Suspended),
        (false, false, true) => Err(Stranger::AnotherIdentity),
        (false, false, false) => Err(Stranger::NotStaff),
    })
}

/// Returns the member of a session, and records the visit. Returns `None` if the session was idle
/// for half an hour or is older than twelve hours, or if the member's access has ended.
pub async fn by_session(database: &Database, session: &str) -> Result<Option<StaffRow>, Error> {
    let Some(hash) = OpaqueToken::parse(session) else {
        return Ok(None);
    };
    let row = sqlx::query_as(
        "WITH member AS MATERIALIZED (
             SELECT s.id FROM current_staff s
             WHERE s.id = (SELECT staff_id FROM staff_sessions WHERE hash = $1)
             FOR NO KEY UPDATE
         ),
         visit AS (
             UPDATE staff_sessions SET last_used_at = now()
             WHERE hash = $1 AND last_used_at > now() - interval '30 minutes'
                   AND created_at > now() - interval '12 hours' AND staff_id = (SELECT id FROM member)
             RETURNING staff_id
         )
         UPDATE current_staff s SET last_seen_at = now() FROM visit v WHERE s.id = v.staff_id
         RETURNING s.id, s.email, s.role, s.may_export, s.ends_at, s.last_seen_at, s.time_zone, s.provider, s.subject",
    );
    Ok(row.bind(hash.as_slice()).fetch_optional(database).await?)
}

/// Ends a session, or all of its member.
pub async fn end_sessions(
    database: &Database,
    session: &str,
    everywhere: bool,
) -> Result<(), Error> {
    let Some(hash) = OpaqueToken::parse(session) else {
        return Ok(());
    };
    sqlx::query!(
        "WITH member AS MATERIALIZED (
             SELECT id FROM staff
             WHERE id = (SELECT staff_id FROM staff_sessions WHERE hash = $1)
             FOR NO KEY UPDATE
         )
         DELETE FROM staff_sessions WHERE staff_id = (SELECT id FROM member) AND ($2 OR hash = $1)",
        hash.as_slice(),
        everywhere,
    )
    .execute(database)
    .await?;
    Ok(())
}

pub async fn set_time_zone(
    database: &Database,
    member: Uuid,
    time_zone: Option<&str>,
) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE staff SET time_zone = $2 WHERE id = $1",
        member,
        time_zone
    )
    .execute(database)
    .await?;
    Ok(())
}
