//! Single users, as staff see them.

use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::admin::dates;
use crate::admin::lists::users::{COLUMNS, ListedUser};
use crate::database::{Database, Error};
use crate::domain::{Author, Role};
use crate::events::SqlAuthor;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct PersonRow {
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub user: ListedUser,
    pub claims: Option<Value>,
    /// True if the user has set the name.
    pub own_name: bool,
}

pub async fn user(database: &Database, id: Uuid) -> Result<Option<PersonRow>, Error> {
    let mut query = QueryBuilder::new("SELECT ");
    query
        .push(COLUMNS)
        .push(", u.claims, u.own_name FROM users u WHERE u.id = ")
        .push_bind(id);
    Ok(query.build_query_as().fetch_optional(database).await?)
}

/// Another user who may be the same person.
#[derive(Debug, Clone, Serialize)]
pub struct AlikeRow {
    pub id: Uuid,
    pub email: Option<String>,
    pub name: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(serialize_with = "dates::text")]
    pub last_seen_on: Option<Date>,
    /// True if both users share an e-mail address: their own, or an identity's.
    pub by_email: bool,
}

/// Returns up to `limit` other users: first users who share an e-mail address, their own or an
/// identity's, then users whose name differs at most in accents and case.
pub async fn alike(database: &Database, id: Uuid, limit: i64) -> Result<Vec<AlikeRow>, Error> {
    // The name comes from a subquery of its own, so that the index of names gives the newest and
    // stops. `OFFSET 0` keeps the planner, which cannot tell how few addresses there are, from
    // reading all identities and users to join them.
    let rows = sqlx::query_as!(
        AlikeRow,
        r#"WITH addresses AS (
               SELECT email AS address FROM users WHERE id = $1 AND email IS NOT NULL
               UNION SELECT lower(email COLLATE "C") FROM identities WHERE user_id = $1 AND email IS NOT NULL
           ), found (id, by_email) AS (
               (SELECT i.user_id, true FROM addresses CROSS JOIN LATERAL (
                    SELECT user_id FROM identities
                    WHERE lower(email COLLATE "C") = address AND email IS NOT NULL AND user_id <> $1 OFFSET 0
                ) AS i LIMIT $2)
               UNION ALL
               (SELECT u.id, true FROM addresses CROSS JOIN LATERAL (
                    SELECT id FROM users WHERE email = address AND id <> $1 OFFSET 0
                ) AS u LIMIT $2)
               UNION ALL
               (SELECT u.id, false FROM users u
                WHERE u.folded_name = (SELECT folded_name FROM users WHERE id = $1) AND u.id <> $1
                ORDER BY u.id DESC LIMIT $2)
           )
           SELECT u.id, u.email, u.name, u.created_at,
                  greatest(u.seen_noted_on, (
                      SELECT max(s.rotated_at)::date FROM identities i JOIN sessions s ON s.identity_id = i.id
                      WHERE i.user_id = u.id
                  )) AS last_seen_on,
                  bool_or(by_email) AS "by_email!"
           FROM found JOIN users u ON u.id = found.id
           GROUP BY u.id ORDER BY bool_or(by_email) DESC, u.id DESC LIMIT $2"#,
        id,
        limit,
    );
    Ok(rows.fetch_all(database).await?)
}

#[derive(Debug, Clone, Serialize)]
pub struct NoteRow {
    pub author: String,
    pub text: String,
    /// The URL of a ticket in another system.
    pub ticket: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

pub async fn notes(database: &Database, user: Uuid) -> Result<Vec<NoteRow>, Error> {
    let rows = sqlx::query_as!(
        NoteRow,
        "SELECT author, text, ticket, created_at FROM notes WHERE user_id = $1 ORDER BY created_at DESC, id DESC",
        user,
    );
    Ok(rows.fetch_all(database).await?)
}

/// Writes a note of a member of staff, and records that it was written; `reason` is `known` if it
/// says that a use which looked like theft was the user's own. A repetition with the same id and
/// text writes nothing. Returns false if there is no such user or the author is no longer staff.
pub async fn add_note(
    database: &Database,
    id: Uuid,
    user: Uuid,
    (text, ticket): (&str, Option<&str>),
    reason: Option<&str>,
    by: Author<'_>,
) -> Result<bool, Error> {
    let added = sqlx::query_scalar!(
        r#"WITH input AS (
               SELECT $1::uuid AS user_id, $2::text AS author, $3::text AS text, $4::text AS ticket, $5::text AS reason,
                      $6::uuid AS id, $7::author AS by
           ), target AS (
               SELECT u.id FROM users u JOIN input t ON u.id = t.user_id WHERE author_allowed(t.by) FOR KEY SHARE OF u
           ), added AS (
               INSERT INTO notes (id, user_id, author, text, ticket)
               SELECT CASE WHEN EXISTS (
                               SELECT FROM notes n WHERE n.id = t.id AND (n.author, n.text) <> (t.author, t.text))
                           THEN event_id() ELSE t.id END, target.id, t.author, t.text, t.ticket
               FROM target, input t
               ON CONFLICT ON CONSTRAINT notes_pkey DO NOTHING RETURNING user_id
           ), recorded AS (
               INSERT INTO events
               SELECT e.* FROM added a, input t, event_row(t.by, 'note_added', a.user_id, reason => t.reason) AS e
           )
           SELECT EXISTS (SELECT FROM added) OR EXISTS (
               SELECT FROM notes n JOIN input t ON n.id = t.id AND n.author = t.author AND n.text = t.text) AS "added!""#,
        user,
        by.actor.name(),
        text,
        ticket,
        reason,
        id,
        SqlAuthor::needing(Role::Support, by) as SqlAuthor<'_>,
    );
    Ok(added.fetch_one(database).await?)
}
