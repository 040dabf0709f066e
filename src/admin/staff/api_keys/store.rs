//! API keys, and the statements that add and revoke them. Each change records its event and checks
//! the role of staff (`admin::staff::store` says why).

use serde::Serialize;
use sqlx::FromRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::admin::staff::api_keys::KeyHash;
use crate::admin::staff::store::Changed;
use crate::database::{Database, Error};
use crate::domain::{Author, KeyName, KeyRole, Role};
use crate::events::SqlAuthor;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct KeyRow {
    pub id: Uuid,
    pub name: String,
    #[serde(skip)]
    #[sqlx(try_from = "&'a str")]
    pub role: KeyRole,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Member of staff or operator who added it.
    pub created_by: String,
    /// Time when it expires.
    #[serde(skip)]
    pub expires_at: Option<OffsetDateTime>,
    /// Time of its last use, up to a minute late.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_used_at: Option<OffsetDateTime>,
}

/// Returns all keys, ordered by name, expired ones included.
pub async fn all(database: &Database) -> Result<Vec<KeyRow>, Error> {
    let rows = sqlx::query_as(
        "SELECT id, name, role, created_at, created_by, expires_at, last_used_at FROM api_keys ORDER BY name",
    );
    Ok(rows.fetch_all(database).await?)
}

/// Returns the key with that hash unless it has expired, and records its use once a minute. Of
/// concurrent requests, one writes, and the others do not wait for it.
pub(super) async fn find(database: &Database, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
    let row = sqlx::query_as(
        "WITH used AS (
             UPDATE api_keys SET last_used_at = now() WHERE id = (
                 SELECT id FROM api_keys
                 WHERE hash = $1 AND (expires_at IS NULL OR expires_at > now())
                       AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
                 FOR NO KEY UPDATE SKIP LOCKED)
         )
         SELECT id, name, role, created_at, created_by, expires_at, last_used_at
         FROM api_keys WHERE hash = $1 AND (expires_at IS NULL OR expires_at > now())",
    );
    Ok(row.bind(hash.as_slice()).fetch_optional(database).await?)
}

pub(super) async fn add(
    database: &Database,
    name: &KeyName,
    hash: &KeyHash,
    role: KeyRole,
    expires_at: Option<OffsetDateTime>,
    by: Author<'_>,
) -> Result<Changed, Error> {
    let role: &str = role.into();
    let row = sqlx::query!(
        r#"WITH input AS (
               SELECT $1::uuid AS id, $2::text AS name, $3::bytea AS hash, $4::text AS role,
                      $5::timestamptz AS expires_at, $6::author AS author
           ),
           permitted AS MATERIALIZED (
               SELECT author_allowed(author) AS yes FROM input
           ),
           added AS (
               INSERT INTO api_keys (id, name, hash, role, expires_at, created_by)
               SELECT t.id, t.name, t.hash, t.role, t.expires_at, (t.author).actor FROM permitted, input t WHERE yes
               ON CONFLICT ON CONSTRAINT api_keys_name_key DO NOTHING
               RETURNING id
           ),
           recorded AS (
               INSERT INTO events
               SELECT e.* FROM added, input t,
                    event_row(t.author, 'api_key_added', detail => jsonb_strip_nulls(jsonb_build_object(
                        'key', t.name, 'role', t.role,
                        'until', 'until ' || to_char(t.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')))) AS e
           )
           SELECT EXISTS (SELECT FROM added) AS "done!", yes AS "permitted!" FROM permitted"#,
        Uuid::now_v7(),
        name.as_str(),
        hash.as_slice(),
        role,
        expires_at,
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    let row = row.fetch_one(database).await?;
    Ok(Changed::of(row.done, row.permitted))
}

pub(super) async fn revoke(
    database: &Database,
    name: &KeyName,
    by: Author<'_>,
) -> Result<Changed, Error> {
    let row = sqlx::query!(
        r#"WITH permitted AS MATERIALIZED (
               SELECT author_allowed($2) AS yes
           ),
           revoked AS (
               DELETE FROM api_keys WHERE name = $1 AND (SELECT yes FROM permitted) RETURNING role
           ),
           recorded AS (
               INSERT INTO events
               SELECT e.* FROM revoked r, event_row($2, 'api_key_revoked',
                                                detail => jsonb_build_object('key', $1::text, 'role', r.role)) AS e
           )
           SELECT EXISTS (SELECT FROM revoked) AS "done!", yes AS "permitted!" FROM permitted"#,
        name.as_str(),
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    let row = row.fetch_one(database).await?;
    Ok(Changed::of(row.done, row.permitted))
}
